//! `atoll certs`: real clients trust its certificates, under the names of the domain and no others.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use registry::{HttpAddr, Settings};
use service::CancellationToken;
use service::server::Running;
use service::settings::Setting as _;

const DOMAIN: &str = "lab.example";

fn certs(dir: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_atoll"))
        .args(["certs", "--domain", DOMAIN, "--dir"])
        .arg(dir)
        .args(more)
        .output()
        .unwrap()
}

fn made(dir: &Path, more: &[&str]) -> String {
    let output = certs(dir, more);
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    String::from_utf8(output.stdout).unwrap()
}

/// Output of a program; none, and a skipped test, if it is not installed.
fn run(program: &str, arguments: &[&str]) -> Option<Output> {
    let output = Command::new(program).args(arguments).output();
    if output.is_err() {
        testkit::skipped(&format!("{program} is not installed"));
    }
    output.ok()
}

fn text(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&all).into_owned()
}

fn path(dir: &Path, name: &str) -> String {
    dir.join(name).to_str().unwrap().to_owned()
}

/// A registry that presents the bundle.
async fn serve(dir: &Path) -> Running {
    let bundle = dir.join("lab.example.pem");
    let settings = Settings {
        registry_http_addr: HttpAddr::parse("127.0.0.1:0").unwrap(),
        registry_storage_filesystem_rootdirectory: dir.join("data"),
        registry_http_tls_certificate: Some(bundle.clone()),
        registry_http_tls_key: Some(bundle),
        ..Settings::default()
    };
    registry::start(settings, CancellationToken::new())
        .await
        .unwrap()
}

#[test]
fn files_appear_once_and_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let printed = made(dir, &[]);
    for expected in [
        "ca.crt: created",
        "lab.example.pem: created",
        "update-ca-trust",
    ] {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
    let mode = |name: &str| fs::metadata(dir.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        ["ca.crt", "ca.key", "lab.example.pem", "crt-list.txt"].map(mode),
        [0o644, 0o600, 0o600, 0o644]
    );
    let all =
        || ["ca.crt", "ca.key", "lab.example.pem"].map(|name| fs::read(dir.join(name)).unwrap());
    let first = all();
    let printed = made(dir, &[]);
    assert!(printed.contains("ca.crt: kept"), "{printed}");
    assert_eq!(all(), first);
    made(dir, &["--renew"]);
    let renewed = all();
    assert_eq!(renewed[..2], first[..2]);
    assert_ne!(renewed[2], first[2]);
    let trust = made(dir, &["--print-trust"]);
    assert!(trust.starts_with("To trust "), "{trust}");
    assert_eq!(all(), renewed);

    // The authority may sign for the domain alone.
    let output = certs(dir, &["--name", "other.example"]);
    assert!(!output.status.success());
    let printed = text(&output);
    assert!(printed.contains("may not sign for this name"), "{printed}");
    assert_eq!(all(), renewed);
}

#[test]
fn a_key_without_its_certificate_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    made(dir, &[]);
    let key = fs::read(dir.join("ca.key")).unwrap();
    fs::remove_file(dir.join("ca.crt")).unwrap();
    made(dir, &[]);
    assert_eq!(fs::read(dir.join("ca.key")).unwrap(), key);

    fs::write(dir.join("ca.key"), "no key").unwrap();
    let printed = text(&certs(dir, &["--renew"]));
    assert!(
        printed.contains("ca.key") && printed.contains("PKCS#8"),
        "{printed}"
    );
    fs::write(
        dir.join("ca.crt"),
        fs::read(dir.join("lab.example.pem")).unwrap(),
    )
    .unwrap();
    let printed = text(&certs(dir, &["--renew"]));
    assert!(printed.contains("CA:TRUE"), "{printed}");
}

/// As in the folder of a pod, of this version and of earlier ones.
#[test]
fn the_key_may_be_in_the_folder_beside() {
    let root = tempfile::tempdir().unwrap();
    let [dir, apart] = ["proxy", "ca"].map(|name| root.path().join(name));
    made(&dir, &[]);
    let certificate = fs::read(dir.join("ca.crt")).unwrap();
    fs::create_dir(&apart).unwrap();
    for elsewhere in [false, true] {
        if elsewhere {
            fs::rename(dir.join("ca.key"), apart.join("ca.key")).unwrap();
        }
        made(&dir, &["--renew"]);
        assert_eq!(fs::read(dir.join("ca.crt")).unwrap(), certificate);
        assert_eq!(dir.join("ca.key").exists(), !elsewhere);
    }
    // A new authority.
    for file in [dir.join("ca.crt"), apart.join("ca.key")] {
        fs::remove_file(file).unwrap();
    }
    made(&dir, &[]);
    assert!(apart.join("ca.key").exists() && !dir.join("ca.key").exists());
    // By the folder's other name.
    let mut here = Command::new(env!("CARGO_BIN_EXE_atoll"));
    here.args(["certs", "--domain", DOMAIN, "--renew"]);
    let output = here.current_dir(&dir).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert!(!dir.join("ca.key").exists());
}

/// Runs openssl in `dir` with the words of `arguments`.
fn openssl(dir: &Path, arguments: &str) -> Output {
    let mut command = Command::new("openssl");
    let command = command.args(arguments.split_whitespace());
    command.current_dir(dir).output().unwrap()
}

/// Text of a successful run.
fn printed(dir: &Path, arguments: &str) -> String {
    let output = openssl(dir, arguments);
    assert!(output.status.success(), "{arguments}: {}", text(&output));
    text(&output)
}

fn has_openssl() -> bool {
    run("openssl", &["version"]).is_some()
}

#[test]
fn openssl_accepts_the_chain_and_its_names() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    made(dir, &[]);
    if !has_openssl() {
        return;
    }
    for name in ["api.lab.example", "lab.example"] {
        printed(
            dir,
            &format!(
                "verify -x509_strict -purpose sslserver -CAfile ca.crt -verify_hostname {name} lab.example.pem"
            ),
        );
    }
    let shown = printed(dir, "x509 -noout -text -in ca.crt");
    for expected in [
        "X509v3 Basic Constraints: critical",
        "CA:TRUE, pathlen:0",
        "X509v3 Key Usage: critical",
        "Certificate Sign, CRL Sign",
        "X509v3 Name Constraints: critical",
        "DNS:lab.example",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    let shown = printed(dir, "x509 -noout -text -in lab.example.pem");
    for expected in [
        "DNS:*.lab.example, DNS:lab.example",
        "CA:FALSE",
        "prime256v1",
        "Digital Signature",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    let bundle = fs::read_to_string(dir.join("lab.example.pem")).unwrap();
    assert_eq!(bundle.matches("BEGIN CERTIFICATE").count(), 1);
    // The validity that browsers accept ends within 398 days of its start, which is a day ago.
    printed(
        dir,
        &format!("x509 -noout -in lab.example.pem -checkend {}", 396 * 86400),
    );
    let later = openssl(
        dir,
        &format!("x509 -noout -in lab.example.pem -checkend {}", 398 * 86400),
    );
    assert!(!later.status.success());
}

#[test]
fn a_stolen_authority_is_of_no_use_for_other_names() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    made(dir, &[]);
    if !has_openssl() {
        return;
    }
    for name in ["DNS:www.other.example", "IP:192.0.2.1", "IP:2001:db8::1"] {
        printed(
            dir,
            &format!(
                "req -newkey rsa:2048 -nodes -keyout k -subj /CN=x -addext subjectAltName={name} -out c"
            ),
        );
        printed(
            dir,
            "x509 -req -in c -CA ca.crt -CAkey ca.key -copy_extensions copy -out leaf",
        );
        let refused = openssl(dir, "verify -CAfile ca.crt leaf");
        assert!(!refused.status.success(), "{name}");
        assert!(
            text(&refused).contains("subtree violation"),
            "{}",
            text(&refused)
        );
    }
}

#[test]
fn an_intermediate_authority_is_part_of_the_chain() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    if !has_openssl() {
        return;
    }
    let extensions = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n";
    fs::write(dir.join("extensions"), extensions).unwrap();
    for command in [
        "req -x509 -newkey rsa:2048 -nodes -keyout root.key -subj /O=Site/CN=Root -out root.crt",
        "req -newkey rsa:2048 -nodes -keyout ca.key -subj /O=Site/CN=Between -out request",
        "x509 -req -in request -CA root.crt -CAkey root.key -days 30 -extfile extensions -out ca.crt",
    ] {
        printed(dir, command);
    }
    let before = fs::read(dir.join("ca.crt")).unwrap();
    let output = certs(dir, &[]);
    assert!(output.status.success(), "{}", text(&output));
    // Its certificates end with it.
    assert!(text(&output).contains("expires in"), "{}", text(&output));
    assert_eq!(fs::read(dir.join("ca.crt")).unwrap(), before);
    let bundle = fs::read_to_string(dir.join("lab.example.pem")).unwrap();
    assert_eq!(bundle.matches("BEGIN CERTIFICATE").count(), 2);
    printed(
        dir,
        "verify -CAfile root.crt -untrusted lab.example.pem -verify_hostname api.lab.example lab.example.pem",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn curl_and_skopeo_trust_the_authority_alone() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    made(dir, &["--name", "localhost", "127.0.0.1"]);
    let running = serve(dir).await;
    let port = running.address().port();
    let ca = path(dir, "ca.crt");
    let resolve = format!("*:{port}:127.0.0.1");
    let curl = |host: &str, more: &[&str]| {
        let url = format!("https://{host}:{port}/v2/");
        let fixed = [
            "--silent",
            "--show-error",
            "--noproxy",
            "*",
            "--resolve",
            &resolve,
            &url,
        ];
        run("curl", &[&fixed[..], more].concat())
    };
    for host in [
        "api.lab.example",
        "registry.lab.example",
        "lab.example",
        "127.0.0.1",
    ] {
        let Some(output) = curl(host, &["--cacert", &ca]) else {
            return;
        };
        assert!(output.status.success(), "{host}: {}", text(&output));
    }
    assert!(!curl("api.lab.example", &[]).unwrap().status.success());
    assert!(
        !curl("a.b.lab.example", &["--cacert", &ca])
            .unwrap()
            .status
            .success()
    );

    // The folder that the instructions name for this registry.
    let trusting = dir.join("certs.d");
    fs::create_dir(&trusting).unwrap();
    fs::copy(&ca, trusting.join("ca.crt")).unwrap();
    let empty = dir.join("empty");
    fs::create_dir(&empty).unwrap();
    let skopeo = |folder: &Path| {
        let image = format!("docker://localhost:{port}/a/b:c");
        run(
            "skopeo",
            &["inspect", "--cert-dir", folder.to_str().unwrap(), &image],
        )
    };
    let Some(output) = skopeo(&trusting) else {
        return;
    };
    assert!(
        text(&output).contains("manifest unknown"),
        "{}",
        text(&output)
    );
    let output = skopeo(&empty).unwrap();
    assert!(text(&output).contains("x509"), "{}", text(&output));
}
