use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use super::*;
use crate::config::{Mode, SpecVersion};
use crate::node::ConnectionFile;

fn installer() -> LiveInstaller {
    LiveInstaller {
        node: NodeConfig {
            version: SpecVersion::V3_2,
            server: "api-int.demo.lab".to_owned(),
            role: "master".to_owned(),
            certificate_authorities: Vec::new(),
            password_hash: Some("$6$salt$hash".to_owned()),
            ssh_keys: vec!["ssh-ed25519 AAAA me".to_owned()],
            host_name: "master-1.demo.lab".to_owned(),
            connections: vec![ConnectionFile {
                interface: "eno1".to_owned(),
                keyfile: "[connection]\nid=eno1\n".to_owned(),
            }],
        },
        disk: "/dev/disk/by-id/wwn-0x5000".parse().unwrap(),
        mark: "0123abcd".to_owned(),
    }
}

#[test]
fn the_live_system_has_the_network_and_the_node() {
    let installer = installer();
    let config = installer.render().unwrap();
    let files = config.storage.files.iter();
    let files: Vec<_> = files
        .map(|file| (file.path.as_str(), file.mode.unwrap()))
        .collect();
    let connection = "/etc/NetworkManager/system-connections/eno1.nmconnection";
    assert_eq!(
        files,
        [
            (SCRIPT_PATH, Mode(0o755)),
            (connection, Mode(0o600)),
            (NODE_CONFIG_PATH, Mode(0o600))
        ]
    );
    let text = |path: &str| {
        let contents = &config.find_file(path).unwrap().contents;
        contents.inline_bytes().unwrap().unwrap()
    };
    assert_eq!(text(connection), b"[connection]\nid=eno1\n");
    let node = installer.node.render().unwrap();
    assert_eq!(
        IgnitionConfig::parse(&text(NODE_CONFIG_PATH)).unwrap(),
        node
    );
    assert_eq!(config.passwd, node.passwd);
    let unit = config.find_unit(UNIT).unwrap();
    assert_eq!(unit.enabled, Some(true));
    let contents = unit.contents.as_deref().unwrap();
    assert!(contents.contains("Install master-1.demo.lab on /dev/disk/by-id/wwn-0x5000\n"));
    assert!(contents.contains("SuccessAction=reboot\n"));
    let script = String::from_utf8(text(SCRIPT_PATH)).unwrap();
    assert!(script.contains("\ndisk=/dev/disk/by-id/wwn-0x5000\nmark=atoll-0123abcd\n"));
    assert!(!script.contains('@'), "{script}");
    assert!(script.contains(NODE_CONFIG_PATH));
}

#[test]
fn only_paths_of_disks_are_taken() {
    for path in [
        "/dev/sda",
        "/dev/nvme0n1",
        "/dev/mapper/mpatha",
        "/dev/disk/by-path/pci-0000:00:1f.2-ata-1",
    ] {
        assert_eq!(path.parse::<DiskPath>().unwrap().to_string(), path);
    }
    // limit: DISK_PATH_MAX
    let long = |count: usize| format!("/dev/{}", "a".repeat(count));
    assert!(long(250).parse::<DiskPath>().is_ok() && long(251).parse::<DiskPath>().is_err());
    for path in [
        "",
        "sda",
        "/dev/",
        "/dev/../etc/passwd",
        "/dev/disk//a",
        "/dev/a b",
        "/dev/a;b",
        "/dev/$a",
        "/dev/%i",
        "/dev/a\nb",
        "/etc/passwd",
    ] {
        assert!(path.parse::<DiskPath>().is_err(), "{path:?}");
    }
}

#[test]
fn marks_are_names() {
    // limit: MARK_MAX
    for (mark, is_name) in [
        ("a-1", true),
        (&"a".repeat(64), true),
        (&"a".repeat(65), false),
        ("", false),
        ("a/b", false),
        ("$(a)", false),
    ] {
        let installer = LiveInstaller {
            mark: mark.to_owned(),
            ..installer()
        };
        assert_eq!(installer.render().is_ok(), is_name, "{mark}");
    }
}

/// Programs of a live system around a folder: `boot` is the partition's content, `log` has the calls.
const PROGRAMS: [(&str, &str); 8] = [
    ("mktemp", "mkdir -p \"$LAB/mnt\"; echo \"$LAB/mnt\""),
    (
        "lsblk",
        "[[ -e $LAB/disk ]] || exit 32; echo /dev/sda; [[ ! -d $LAB/boot ]] || echo /dev/sda3",
    ),
    ("blkid", "[[ ${!#} != /dev/sda3 ]] || echo boot"),
    (
        "mount",
        "rmdir \"$LAB/mnt\"; ln -s \"$LAB/boot\" \"$LAB/mnt\"",
    ),
    ("umount", "rm \"$LAB/mnt\"; mkdir \"$LAB/mnt\""),
    ("udevadm", ""),
    ("sleep", ""),
    (
        "coreos-installer",
        "echo \"$@\" >>\"$LAB/log\"; rm -rf \"$LAB/boot\"; mkdir \"$LAB/boot\"",
    ),
];

fn run(lab: &Path, script: &str) -> Output {
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", lab.display());
    let mut command = Command::new("bash");
    command.args(["-c", script]).env("LAB", lab);
    command.env("PATH", path).output().unwrap()
}

/// The sequence of calls; the programs of the live system themselves are not tested here.
#[test]
fn an_image_installs_a_disk_once() {
    let lab = tempfile::tempdir().unwrap();
    for (name, text) in PROGRAMS {
        let path = lab.path().join(name);
        fs::write(&path, format!("#!/bin/bash\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let script = |mark: &str| {
        let installer = LiveInstaller {
            mark: mark.to_owned(),
            ..installer()
        };
        let config = installer.render().unwrap();
        let contents = &config.find_file(SCRIPT_PATH).unwrap().contents;
        String::from_utf8(contents.inline_bytes().unwrap().unwrap()).unwrap()
    };
    let log = || fs::read_to_string(lab.path().join("log")).unwrap_or_default();
    let one =
        "install --ignition-file /etc/atoll/node.ign --copy-network /dev/disk/by-id/wwn-0x5000\n";

    let missing = run(lab.path(), &script("one"));
    let reason = String::from_utf8(missing.stderr).unwrap();
    assert!(!missing.status.success() && reason.contains("there is no disk"));
    assert_eq!(log(), "");

    fs::write(lab.path().join("disk"), "").unwrap();
    let first = run(lab.path(), &script("one"));
    assert!(first.status.success(), "{first:?}");
    assert_eq!(log(), one);
    let again = run(lab.path(), &script("one"));
    let reason = String::from_utf8(again.stderr).unwrap();
    assert!(!again.status.success());
    assert!(reason.contains("has been installed from this image"));
    assert_eq!(log(), one);
    // A disk with another installation is written anew.
    let other = run(lab.path(), &script("two"));
    assert!(other.status.success(), "{other:?}");
    assert_eq!(log(), one.repeat(2));
}
