//! `atoll node config` and `atoll node image` without a cluster; `tests/tests/it/nodes` has those with one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use ignition::IgnitionConfig;
use serde_json::Value;
use testkit::iso::{self, LiveImageOptions};

const PEM: &str = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";
const HASH: &str = "$6$salt$hashofapassword";
const NETWORK: &str = "hostname: cp-0.demo.lab
interfaces:
- name: ens3
  addresses: [10.0.0.20/24]
  gateways: [10.0.0.1]
";
/// Arguments of every node.
const NODE: [&str; 7] = [
    "cp-0.demo.lab",
    "--config-server",
    "api-int.demo.lab",
    "--config-ca",
    "ca.pem",
    "--network",
    "network.yaml",
];
const IMAGE: [&str; 6] = [
    "--base",
    "live.iso",
    "--install-to",
    "/dev/sda",
    "--output",
    "node.iso",
];

struct Lab {
    folder: tempfile::TempDir,
}

impl Lab {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        iso::write(&folder.path().join("live.iso"), &LiveImageOptions::small()).unwrap();
        for (name, text) in [
            ("ca.pem", PEM),
            ("network.yaml", NETWORK),
            ("hash", HASH),
            ("me.pub", "ssh-ed25519 AAAA me\n"),
            ("me", "-----BEGIN OPENSSH PRIVATE KEY-----\n"),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, parts: &[&[&str]]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
        command.args(parts.concat()).current_dir(self.folder.path());
        command.output().unwrap()
    }

    fn succeeds(&self, parts: &[&[&str]]) -> String {
        let output = self.run(parts);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{parts:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn fails(&self, parts: &[&[&str]]) -> String {
        let output = self.run(parts);
        assert!(!output.status.success(), "{parts:?}");
        assert!(output.stdout.is_empty());
        String::from_utf8(output.stderr).unwrap()
    }

    fn mode(&self, name: &str) -> u32 {
        let metadata = fs::metadata(self.path(name)).unwrap();
        metadata.permissions().mode() & 0o777
    }

    /// The configuration in an image.
    fn embedded(&self, image: &str) -> IgnitionConfig {
        let shown = self.succeeds(&[&["image", "show", image, "--ignition"]]);
        IgnitionConfig::parse(shown.as_bytes()).unwrap()
    }
}

fn text(config: &IgnitionConfig, path: &str) -> Vec<u8> {
    let file = config.find_file(path).expect(path);
    file.contents.inline_bytes().unwrap().unwrap()
}

#[test]
fn a_configuration_is_the_specifications_and_private() {
    let lab = Lab::new();
    let login = ["--ssh-key", "me.pub", "--password-hash", "hash"];
    let command = [&["node", "config"], &NODE[..], &login];
    let config = lab.succeeds(&command);
    let json: Value = serde_json::from_str(&config).unwrap();
    let source = &json["ignition"]["config"]["merge"][0]["source"];
    assert_eq!(source, "https://api-int.demo.lab:22623/config/master");
    let user = &json["passwd"]["users"][0];
    assert_eq!(user["passwordHash"], HASH);
    assert_eq!(user["sshAuthorizedKeys"][0], "ssh-ed25519 AAAA me");
    let files = json["storage"]["files"].as_array().unwrap();
    let modes: Vec<_> = files.iter().map(|file| &file["mode"]).collect();
    assert_eq!(modes, [420, 384]);
    assert_eq!(files[0]["contents"]["source"], "data:,cp-0.demo.lab");
    let keyfile = files[1]["contents"]["source"].as_str().unwrap();
    assert!(keyfile.contains("address1%3D10.0.0.20/24"), "{keyfile}");

    let output = ["--output", "node.ign", "--role", "worker"];
    lab.succeeds(&[&command[..], &[&output]].concat());
    assert_eq!(lab.mode("node.ign"), 0o600);
    lab.succeeds(&[&["ignition", "validate", "node.ign"]]);
    let written = fs::read_to_string(lab.path("node.ign")).unwrap();
    assert_eq!(
        written.trim_end(),
        config.trim_end().replace("config/master", "config/worker")
    );
    let refused = lab.fails(&[&command[..], &[&output[..2]]].concat());
    assert!(refused.contains("use --force"), "{refused}");
    lab.succeeds(&[&command[..], &[&output[..2], &["--force"]]].concat());
}

#[test]
fn mistakes_of_a_node_are_named() {
    let lab = Lab::new();
    let write = |name: &str, text: &str| fs::write(lab.path(name), text).unwrap();
    write("wrong.yaml", &NETWORK.replace("10.0.0.1]", "10.0.1.1]"));
    write("other.yaml", &NETWORK.replace("cp-0", "cp-1"));
    write("password", "hunter2");
    for (arguments, expected) in [
        (&["--network", "wrong.yaml"][..], "wrong.yaml:5:14: "),
        (
            &["--network", "other.yaml"],
            "is that of host cp-1.demo.lab",
        ),
        (&["--ssh-key", "me"], "it is a private key"),
        (&["--password-hash", "password"], "not a crypt hash"),
        (&["--config-ca", "hash"], "not a certificate"),
        (&["--config-server", "https://h"], "no name and no address"),
        (&["--role", "infra"], "worker"),
        (&["--network", "none.yaml"], "none.yaml"),
    ] {
        // The last of a repeated option would be refused by the parser.
        let mut node: Vec<&str> = NODE.to_vec();
        match node.iter().position(|it| *it == arguments[0]) {
            Some(index) => node[index + 1] = arguments[1],
            None => node.extend(arguments),
        }
        let said = lab.fails(&[&["node", "config"], &node[..]]);
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert!(!said.contains("hunter2"));
    }
    let said = lab.fails(&[&["node", "config", "CP_0"]]);
    assert!(said.contains("no name of a node"), "{said}");
}

#[test]
fn an_image_installs_its_node() {
    let lab = Lab::new();
    let node = lab.succeeds(&[&["node", "config"], &NODE[..]]);
    let said = lab.succeeds(&[&["node", "image"], &NODE[..], &IMAGE[..]]);
    assert!(said.contains("atoll node approve cp-0.demo.lab"), "{said}");
    assert_eq!(lab.mode("node.iso"), 0o600);
    let config = lab.embedded("node.iso");
    let connection = "/etc/NetworkManager/system-connections/ens3.nmconnection";
    assert_eq!(
        text(&config, ignition::live_installer::NODE_CONFIG_PATH),
        node.trim_end().as_bytes()
    );
    assert!(text(&config, connection).starts_with(b"[connection]\n"));
    assert_eq!(config.systemd.units.len(), 1);

    // A second image is another one: a disk that the first has installed is installed again.
    let second = ["--output", "second.iso"];
    lab.succeeds(&[&["node", "image"], &NODE[..], &IMAGE[..4], &second[..]]);
    assert_ne!(lab.embedded("second.iso"), config);

    // All but the area of the configuration is the base's.
    lab.succeeds(&[&["image", "reset", "node.iso", "-o", "again.iso"]]);
    let same = |name: &str| fs::read(lab.path(name)).unwrap();
    assert!(same("again.iso") == same("live.iso"));
}

#[test]
fn a_minimal_image_has_the_network_in_early_boot() {
    let lab = Lab::new();
    let minimal = ["--rootfs-url", "http://10.0.0.2/rootfs.img"];
    lab.succeeds(&[&["node", "image"], &NODE[..], &IMAGE[..], &minimal]);
    let shown = lab.succeeds(&[&["image", "show", "node.iso"]]);
    assert!(shown.contains("none: a minimal image"), "{shown}");
    assert!(shown.contains("coreos.live.rootfs_url"), "{shown}");
    let image = image_service::image::BaseImage::open(&lab.path("node.iso")).unwrap();
    let members = ignition::archive::read(&image.embedded().unwrap()).unwrap();
    let keyfile = members
        .iter()
        .find(|member| member.name == "etc/coreos-firstboot-network/ens3.nmconnection")
        .unwrap();
    assert_eq!(keyfile.mode, 0o100_600);
    assert!(keyfile.data.starts_with(b"[connection]\n"));
    // Of an image that is minimal, too.
    let of = ["--base", "node.iso", "--output", "second.iso"];
    lab.succeeds(&[&["node", "image"], &NODE[..], &IMAGE[2..4], &of]);
    let image = image_service::image::BaseImage::open(&lab.path("second.iso")).unwrap();
    let members = ignition::archive::read(&image.embedded().unwrap()).unwrap();
    assert!(members.iter().any(|member| member.name == keyfile.name));
}

#[test]
fn mistakes_leave_no_image() {
    let lab = Lab::new();
    fs::write(lab.path("text.iso"), "no image").unwrap();
    let long = "/dev/sda;reboot";
    for (arguments, expected) in [
        (&["--install-to", "/dev/sda"][..], "name one by --base"),
        (&["--base", "live.iso"], "--install-to"),
        (
            &["--base", "live.iso", "--install-to", long],
            "expected the path of a disk",
        ),
        (
            &["--base", "text.iso", "--install-to", "/dev/sda"],
            "opening the image",
        ),
        (
            &[
                "--base",
                "live.iso",
                "--install-to",
                "/dev/sda",
                "--rootfs-url",
                "http://h/$x",
            ],
            "boot loaders do not take",
        ),
    ] {
        let output = ["--output", "node.iso"];
        let said = lab.fails(&[&["node", "image"], &NODE[..], arguments, &output]);
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert!(!lab.path("node.iso").exists() && !lab.path("node.iso.part").exists());
    }
    fs::write(lab.path("node.iso"), "mine").unwrap();
    let said = lab.fails(&[&["node", "image"], &NODE[..], &IMAGE[..]]);
    assert!(said.contains("use --force"), "{said}");
    assert_eq!(fs::read(lab.path("node.iso")).unwrap(), b"mine");
}

#[test]
fn a_full_disk_leaves_no_image() {
    let lab = Lab::new();
    // A limit of the file's size fails the same write as a full disk.
    let mut command = Command::new("bash");
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$@\"";
    command.args(["-c", script, "bash", env!("CARGO_BIN_EXE_atoll")]);
    command.args([&["node", "image"], &NODE[..], &IMAGE[..]].concat());
    let output = command.current_dir(lab.folder.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(said.contains("writing node.iso"), "{said}");
    assert!(!lab.path("node.iso").exists() && !lab.path("node.iso.part").exists());
}
