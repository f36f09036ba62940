//! `atoll image` on files.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::time::Duration;

use service::CancellationToken;
use service::settings::Setting as _;
use sha2::{Digest as _, Sha256};
use testkit::iso::{self, LiveImageOptions};

const IGNITION: &str = r#"{"ignition":{"version":"3.1.0"}}"#;

struct Lab {
    folder: tempfile::TempDir,
}

impl Lab {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        iso::write(&folder.path().join("live.iso"), &LiveImageOptions::small()).unwrap();
        fs::write(folder.path().join("c.ign"), IGNITION).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn atoll(&self, arguments: &[&str]) -> Output {
        self.run(&[&["image"], arguments].concat())
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
        command.args(arguments).current_dir(self.folder.path());
        command.output().unwrap()
    }

    fn succeeds(&self, arguments: &[&str]) -> String {
        let output = self.atoll(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn fails(&self, arguments: &[&str]) -> String {
        let output = self.atoll(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn is_same(&self, one: &str, other: &str) -> bool {
        fs::read(self.path(one)).unwrap() == fs::read(self.path(other)).unwrap()
    }
}

#[test]
fn an_embedded_image_is_shown_and_reset() {
    let lab = Lab::new();
    assert!(
        lab.succeeds(&["show", "live.iso"])
            .contains("Ignition          none\n")
    );
    lab.succeeds(&[
        "embed",
        "live.iso",
        "--ignition",
        "c.ign",
        "--karg",
        "a=b",
        "--karg",
        "c",
        "-o",
        "own.iso",
    ]);
    let shown = lab.succeeds(&["show", "own.iso", "--ignition"]);
    assert_eq!(shown.trim_end(), IGNITION);
    let shown: serde_json::Value =
        serde_json::from_str(&lab.succeeds(&["show", "own.iso", "--json"])).unwrap();
    let default = shown["default_kernel_arguments"].as_str().unwrap();
    assert_eq!(shown["kernel_arguments"], format!("{default} a=b c"));
    assert_eq!(shown["ignition_length"], IGNITION.len());
    lab.succeeds(&["reset", "own.iso", "-o", "again.iso"]);
    assert!(lab.is_same("again.iso", "live.iso"));
    assert!(!lab.is_same("own.iso", "live.iso"));
    // In place, too.
    lab.succeeds(&["reset", "own.iso", "-o", "own.iso", "--force"]);
    assert!(lab.is_same("own.iso", "live.iso"));
}

#[test]
fn a_minimal_image_and_its_parts_make_a_network_boot() {
    let lab = Lab::new();
    let url = "http://h/rootfs.img?a=b&c=d";
    lab.succeeds(&[
        "minimal",
        "live.iso",
        "--ignition",
        "c.ign",
        "--rootfs-url",
        url,
        "-o",
        "minimal.iso",
    ]);
    let shown = lab.succeeds(&["show", "minimal.iso"]);
    assert!(shown.contains("none: a minimal image"), "{shown}");
    assert!(shown.contains(url), "{shown}");
    lab.succeeds(&["extract", "live.iso", "-d", "."]);
    let length = |name: &str| fs::metadata(lab.path(name)).unwrap().len();
    assert!(
        length("rootfs.img") > 200_000 && length("vmlinuz") == 20_000 && length("initrd.img") > 0
    );
    assert!(length("minimal.iso") < length("live.iso") - 190_000);
    assert!(
        lab.fails(&["extract", "live.iso", "-d", "."])
            .contains("use --force")
    );
}

#[test]
fn only_whole_images_pass() {
    let lab = Lab::new();
    let options = LiveImageOptions::default();
    iso::write(&lab.path("genuine.iso"), &options).unwrap();
    let digest = hex::encode(Sha256::digest(fs::read(lab.path("genuine.iso")).unwrap()));
    let said = lab.succeeds(&["verify", "genuine.iso", "--sha256", &digest]);
    assert!(
        said.contains(&format!("{}, whole, sha256:{digest}", options.volume_id())),
        "{said}"
    );
    let said = lab.fails(&["verify", "genuine.iso", "--sha256", &"0".repeat(64)]);
    assert!(
        said.contains(&digest) && said.contains("download it again"),
        "{said}"
    );
    assert!(
        lab.fails(&["verify", "live.iso"])
            .contains("a genuine one at least")
    );
    let file = fs::File::options()
        .write(true)
        .open(lab.path("genuine.iso"))
        .unwrap();
    file.set_len(1 << 20).unwrap();
    assert!(lab.fails(&["verify", "genuine.iso"]).contains("bytes"));
}

#[test]
fn configurations_that_ignition_refuses_are_not_embedded() {
    let lab = Lab::new();
    let link = r#"{"path":"/etc/a","target":"b"}"#;
    let twice =
        format!(r#"{{"ignition":{{"version":"3.2.0"}},"storage":{{"links":[{link},{link}]}}}}"#);
    for (config, reason) in [
        (
            r#"{"ignition":{"version":"2.2.0"}}"#,
            "\"2.2.0\" is not supported",
        ),
        ("{}", "needs a version"),
        ("", "the configuration is not valid"),
        (
            r#"{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfig","spec":{"config":{"ignition":{"version":"3.2.0"}}}}"#,
            "this is a MachineConfig",
        ),
        (&twice, "storage.links[1]"),
        (
            r#"{"ignition":{"version":"3.9.0"}}"#,
            "expected one of 3.0.0 to 3.6.0",
        ),
    ] {
        fs::write(lab.path("x.ign"), config).unwrap();
        let minimal = ["minimal", "live.iso", "--rootfs-url", "http://h/r"];
        for command in [&["embed", "live.iso"][..], &minimal] {
            let rest = &["--ignition", "x.ign", "-o", "x.iso"][..];
            let said = lab.fails(&[command, rest].concat());
            assert!(said.contains(reason), "{config}: {said}");
            assert!(!lab.path("x.iso").exists());
        }
    }
    // A member that Ignition ignores is a warning.
    fs::write(
        lab.path("x.ign"),
        r#"{"ignition":{"version":"3.6.0"},"extra":1}"#,
    )
    .unwrap();
    let embedded = lab.atoll(&["embed", "live.iso", "--ignition", "x.ign", "-o", "x.iso"]);
    assert!(embedded.status.success());
    assert!(String::from_utf8_lossy(&embedded.stderr).contains("warning: extra"));
}

#[test]
fn kernel_arguments_change_without_an_ignition() {
    let lab = Lab::new();
    let kargs = |image: &str| {
        let shown: serde_json::Value =
            serde_json::from_str(&lab.succeeds(&["show", image, "--json"])).unwrap();
        shown["kernel_arguments"].as_str().unwrap().to_owned()
    };
    let default = kargs("live.iso");
    lab.succeeds(&[
        "embed",
        "live.iso",
        "--ignition",
        "c.ign",
        "--karg",
        "a=1",
        "-o",
        "own.iso",
    ]);
    lab.succeeds(&["embed", "own.iso", "--karg", "b", "-o", "more.iso"]);
    assert_eq!(kargs("more.iso"), format!("{default} a=1 b"));
    let change = [
        "--replace-karg",
        "a=1=2",
        "--delete-karg",
        "b",
        "--karg",
        "c",
    ];
    lab.succeeds(&[&["embed", "more.iso", "-o", "changed.iso"], &change[..]].concat());
    assert_eq!(kargs("changed.iso"), format!("{default} a=2 c"));
    let shown = lab.succeeds(&["show", "changed.iso", "--ignition"]);
    assert_eq!(shown.trim_end(), IGNITION, "the ignition stays");
    let change = [
        &["--replace-karg", "ignition.platform.id=metal=qemu"][..],
        &["--delete-karg", "rw", "--karg", "c"],
    ];
    let minimal = [
        &[
            "minimal",
            "live.iso",
            "--rootfs-url",
            "http://h/r",
            "--ignition",
            "c.ign",
        ][..],
        &["-o", "minimal.iso"],
    ];
    lab.succeeds(&[minimal.concat(), change.concat()].concat());
    assert_eq!(
        kargs("minimal.iso"),
        "ignition.firstboot ignition.platform.id=qemu coreos.live.rootfs_url=\"http://h/r\" c"
    );
    // An absent one is no failure, so that a change can be repeated.
    let absent = lab.atoll(&["embed", "own.iso", "--delete-karg", "a=2", "-o", "same.iso"]);
    assert!(absent.status.success());
    let said = String::from_utf8_lossy(&absent.stderr);
    assert!(
        said.contains("warning: the image has no kernel argument \"a=2\""),
        "{said}"
    );
    assert!(lab.is_same("same.iso", "own.iso"));
    let said = lab.fails(&["embed", "own.iso", "--replace-karg", "a=2", "-o", "x.iso"]);
    assert!(said.contains("write it as KEY=OLD=NEW"), "{said}");
    let nothing = lab.atoll(&["embed", "own.iso", "-o", "x.iso"]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(!lab.path("x.iso").exists());
}

#[test]
fn mistakes_leave_no_file() {
    let lab = Lab::new();
    fs::write(lab.path("broken.ign"), "{").unwrap();
    for (arguments, text) in [
        (
            vec![
                "embed",
                "live.iso",
                "--ignition",
                "broken.ign",
                "-o",
                "x.iso",
            ],
            "broken.ign: the configuration is not valid",
        ),
        (
            vec!["embed", "live.iso", "--ignition", "none.ign", "-o", "x.iso"],
            "none.ign",
        ),
        (
            vec!["embed", "c.ign", "--ignition", "c.ign", "-o", "x.iso"],
            "too short for an ISO image",
        ),
        (
            vec![
                "embed",
                "live.iso",
                "--ignition",
                "c.ign",
                "--karg",
                "a\nb",
                "-o",
                "x.iso",
            ],
            "control character",
        ),
        (
            vec![
                "minimal",
                "live.iso",
                "--ignition",
                "c.ign",
                "--rootfs-url",
                "a\"b",
                "-o",
                "x.iso",
            ],
            "boot loaders do not take",
        ),
        (
            vec!["embed", "live.iso", "--ignition", "c.ign", "-o", "live.iso"],
            "use --force",
        ),
        (vec!["reset", "live.iso", "-o", "none/x.iso"], "none/x.iso"),
    ] {
        let said = lab.fails(&arguments);
        assert!(said.contains(text), "{arguments:?}: {said}");
        assert!(!lab.path("x.iso").exists() && !lab.path("x.iso.part").exists());
    }
    let names = fs::read_dir(lab.folder.path()).unwrap().count();
    assert_eq!(names, 3);
}

struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Waits until the image service at `origin` has its images.
async fn has_images(origin: &str) {
    let client = service::http_client(None, false).unwrap();
    let until_ready = async {
        loop {
            let answer = client.get(format!("{origin}/health")).send().await;
            if answer.is_ok_and(|answer| answer.status() == 200) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), until_ready)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_travels_with_the_mirror_into_the_image_service() {
    let lab = Lab::new();
    iso::write(&lab.path("whole.iso"), &LiveImageOptions::default()).unwrap();
    let layout = lab.path("boot-images");
    let layout = layout.to_str().unwrap();
    let printed = lab.succeeds(&["push", "whole.iso", &format!("oci://{layout}:os/live:418")]);
    assert!(printed.contains("os/live:418@sha256:"), "{printed}");
    let set = format!(
        "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror: {{additionalImages: [{{name: \"oci://{layout}\"}}]}}\n"
    );
    fs::write(lab.path("set.yaml"), set).unwrap();

    let shutdown = CancellationToken::new();
    let settings = registry::Settings {
        registry_http_addr: registry::HttpAddr::parse("127.0.0.1:0").unwrap(),
        registry_storage_filesystem_rootdirectory: lab.path("registry"),
        ..registry::Settings::default()
    };
    let running = registry::start(settings, shutdown.clone()).await.unwrap();
    let registry = running.address();
    let target = format!("docker://{registry}/inside");
    for arguments in [
        &["mirror", "--config", "set.yaml", "file://out"][..],
        &["mirror", "--from", "out", &target, "--dest-use-http"],
    ] {
        let output = tokio::task::block_in_place(|| lab.run(arguments));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
    }

    fs::create_dir(lab.path("data")).unwrap();
    let os_images = serde_json::json!([{
        "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.1",
        "url": format!("oci://{registry}/inside/os/live:418"),
        "sha256": hex::encode(Sha256::digest(fs::read(lab.path("whole.iso")).unwrap())),
    }]);
    let port = testkit::ports::free_port().unwrap();
    let service = Command::new(env!("CARGO_BIN_EXE_atoll"))
        .args(["serve", "image-service"])
        .env("LISTEN_ADDRESS", "127.0.0.1")
        .env("LISTEN_PORT", port.to_string())
        .env("DATA_DIR", lab.path("data"))
        .env("LIVE_ISO", lab.path("none"))
        .env("INSECURE_SKIP_VERIFY", "true")
        .env("OS_IMAGES", os_images.to_string())
        .spawn()
        .unwrap();
    let _service = KilledOnDrop(service);
    has_images(&format!("http://127.0.0.1:{port}")).await;
    shutdown.cancel();
    assert!(lab.is_same("whole.iso", "data/rhcos-full-iso-418.1-x86_64.iso"));
}

#[test]
fn files_that_are_no_live_images_are_not_pushed() {
    let lab = Lab::new();
    fs::write(lab.path("other.iso"), "text").unwrap();
    let refused = lab.fails(&["push", "other.iso", "oci://layout:os/live:418"]);
    assert!(refused.contains("opening the image"), "{refused}");
    let refused = lab.fails(&["push", "live.iso", "oci://layout"]);
    assert!(
        refused.contains("oci://folder:repository[:tag]"),
        "{refused}"
    );
    assert!(!lab.path("layout").exists());
}

#[test]
fn images_for_labs_are_accepted_like_genuine_ones() {
    let lab = Lab::new();
    for arch in ["x86_64", "arm64", "s390x"] {
        let made = lab.succeeds(&["make-test-iso", "lab.iso", "--force", "--arch", arch]);
        assert!(made.contains("rhcos-418.94.202511191518-0"), "{made}");
        lab.succeeds(&["verify", "lab.iso"]);
    }
    let error = lab.fails(&["make-test-iso", "lab.iso"]);
    assert!(error.contains("--force"), "{error}");
    lab.succeeds(&[
        "make-test-iso",
        "own.iso",
        "--version",
        "417.1",
        "--rootfs-mib",
        "120",
    ]);
    let shown = lab.succeeds(&["show", "own.iso", "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["volume_id"], "rhcos-417.1");
    assert!(
        shown["rootfs_length"]
            .as_u64()
            .is_some_and(|length| length > 120 << 20)
    );
}
