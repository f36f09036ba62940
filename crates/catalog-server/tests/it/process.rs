//! The program under the names and flags that catalog images use.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use testkit::certificates;

use crate::content::{large, package, write};

/// Generous deadline for slow machines.
const DEADLINE: Duration = Duration::from_mins(2);

/// The program called `name`.
fn called(folder: &Path, name: &str) -> Command {
    let path = folder.join(name);
    if !path.exists() {
        symlink(env!("CARGO_BIN_EXE_catalog-server"), &path).unwrap();
    }
    let mut command = Command::new(path);
    command
        .env("TMPDIR", folder)
        .env_remove("REGISTRY_AUTH_FILE");
    command
}

fn opm(folder: &TempDir, flags: &[&str]) -> Command {
    let mut command = called(folder.path(), "opm");
    command
        .arg("serve")
        .arg(folder.path().join("configs"))
        .args(flags);
    command
}

fn folder(text: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    write(&folder.path().join("configs"), text);
    let cache = folder.path().join("cache");
    (folder, cache)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Waits until `making` builds a cache; returns its file.
fn begun(cache: &Path, making: &mut Child) -> PathBuf {
    let building = cache.join("catalog.cache.building");
    let deadline = Instant::now() + DEADLINE;
    while fs::metadata(&building).map_or(0, |file| file.len()) == 0 {
        assert!(Instant::now() < deadline, "nothing is made");
        assert!(
            making.try_wait().unwrap().is_none(),
            "it was made too fast to be stopped"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    building
}

/// A server process, killed on drop.
struct Served {
    child: Child,
    port: String,
}

impl Served {
    /// Runs `command` and reads the port from its log.
    fn start(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        for line in log.lines() {
            let line = line.unwrap();
            if line.contains("catalog server listening") {
                let port = line.split("addresses\":\"[").nth(1).unwrap();
                let port = port.split(']').next().unwrap().rsplit(':').next().unwrap();
                let port = port.to_owned();
                return Self { child, port };
            }
        }
        panic!("it ended: {:?}", child.wait());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn it_serves_as_opm_and_passes_its_own_probe() {
    let (folder, cache) = folder(&package("a", "1.0.0"));
    // A cache of opm.
    fs::create_dir_all(cache.join("pogreb.v1/db")).unwrap();
    fs::write(cache.join("pogreb.v1/digest"), "00").unwrap();
    let flag = format!("--cache-dir={}", cache.display());
    let served = Served::start(opm(&folder, &["-p", "0", &flag, "--pprof-addr="]));
    let probe = |address: &str| {
        let mut probe = called(folder.path(), "grpc_health_probe");
        probe
            .arg(format!("-addr={address}"))
            .args(["-rpc-timeout", "30s"]);
        probe.output().unwrap()
    };
    let well = probe(&format!(":{}", served.port));
    assert!(well.status.success(), "{}", stderr(&well));
    assert!(stderr(&well).contains("SERVING"));
    drop(served);
    assert_eq!(probe("127.0.0.1:1").status.code(), Some(2));
    assert_eq!(probe("").status.code(), Some(1));
}

#[test]
fn the_probe_supports_tls() {
    let (folder, _) = folder(&package("a", "1.0.0"));
    let pem = certificates::self_signed("localhost").unwrap();
    let [cert, key] = ["cert", "key"].map(|name| folder.path().join(name));
    fs::write(&cert, pem.cert).unwrap();
    fs::write(&key, pem.key).unwrap();
    let mut server = opm(&folder, &["-p", "0"]);
    server
        .env("GRPC_CERT_FILE", &cert)
        .env("GRPC_KEY_FILE", &key);
    let served = Served::start(server);
    let ca = format!("-tls-ca-cert={}", cert.display());
    for (flags, code) in [
        (vec!["-tls", &ca], Some(0)),
        (vec!["-tls", "-tls-no-verify"], Some(0)),
        (vec!["-tls"], Some(2)),
        (vec![], Some(3)),
    ] {
        let mut probe = called(folder.path(), "grpc_health_probe");
        probe.arg(format!("-addr=localhost:{}", served.port));
        probe.args(["-connect-timeout=30s", "-rpc-timeout=30s"]);
        let probed = probe.args(&flags).output().unwrap();
        assert_eq!(probed.status.code(), code, "{flags:?}: {}", stderr(&probed));
    }
}

#[test]
fn caches_are_prebuilt_and_enforced() {
    let (folder, cache) = folder(&package("a", "1.0.0"));
    let flag = format!("--cache-dir={}", cache.display());
    let enforced = [flag.as_str(), "--cache-enforce-integrity", "-p", "0"];
    let refused = opm(&folder, &enforced).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains("there is no cache yet"),
        "{}",
        stderr(&refused)
    );
    let made = opm(&folder, &[&flag, "--cache-only"]).output().unwrap();
    assert!(made.status.success(), "{}", stderr(&made));
    drop(Served::start(opm(&folder, &enforced)));
    write(&folder.path().join("configs"), &package("a", "2.0.0"));
    let refused = opm(&folder, &enforced).output().unwrap();
    assert!(
        stderr(&refused).contains("earlier state"),
        "{}",
        stderr(&refused)
    );
    drop(Served::start(opm(&folder, &[&flag, "-p", "0"])));
}

#[test]
fn an_invalid_catalog_exits_with_all_problems() {
    let text = package("a", "1.0.0").replace("olm.package\",\"value", "x\",\"value");
    let (folder, _) =
        folder(&(text + "{\"schema\":\"olm.channel\",\"package\":\"b\",\"name\":\"c\"}"));
    let refused = opm(&folder, &["-p", "0"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let stderr = stderr(&refused);
    assert!(
        stderr.contains("catalog.json:3") && stderr.contains("catalog.json:4"),
        "{stderr}"
    );
    let left = fs::read_dir(folder.path()).unwrap().count();
    // The catalog and the program: no temporary files.
    assert_eq!(left, 2);
}

#[test]
fn it_restarts_after_a_kill_during_the_build() {
    let (folder, cache) = folder(&large("a", "1.0.0", 60_000));
    let flag = format!("--cache-dir={}", cache.display());
    let mut making = opm(&folder, &[&flag, "--cache-only"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let building = begun(&cache, &mut making);
    making.kill().unwrap();
    making.wait().unwrap();
    assert!(!cache.join("catalog.cache").exists());
    drop(Served::start(opm(&folder, &[&flag, "-p", "0"])));
    assert!(cache.join("catalog.cache").exists() && !building.exists());
}

#[test]
fn a_stop_during_the_build_exits_before_listening() {
    let (folder, cache) = folder(&large("a", "1.0.0", 60_000));
    let flag = format!("--cache-dir={}", cache.display());
    let mut making = opm(&folder, &[&flag, "-p", "0"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    begun(&cache, &mut making);
    let mut stop = Command::new("kill");
    assert!(
        stop.arg(making.id().to_string())
            .status()
            .unwrap()
            .success()
    );
    let ended = making.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", ended.status);
    assert!(!stderr(&ended).contains("listening"), "{}", stderr(&ended));
}
