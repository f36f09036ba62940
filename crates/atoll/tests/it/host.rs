//! `atoll host`: records are checked with positions, and rendered from an inventory.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const CONTROL_NODE: &str = include_str!("../../../host-records/fixtures/control-node.yaml");
const INVENTORY: &str = include_str!("../../../host-records/fixtures/inventory.yaml");

/// Runs `atoll host` in a folder, with a standard input.
pub(super) fn host(dir: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_atoll"))
        .arg("host")
        .args(arguments)
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses its arguments reads nothing.
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).ok();
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn mistakes_are_printed_with_their_lines() {
    let dir = tempfile::tempdir().unwrap();
    let good = host(dir.path(), &["check", "-"], CONTROL_NODE);
    assert!(good.status.success());
    assert_eq!(text(&good.stdout), "");
    assert_eq!(
        text(&good.stderr),
        "0 errors, 0 warnings in 1 host, 1 secret, 1 machine\n"
    );
    let wrong = CONTROL_NODE.replace("bootMode: UEFI", "bootMode: uefi");
    fs::write(dir.path().join("h.yaml"), wrong).unwrap();
    let found = host(dir.path(), &["check", "h.yaml"], "");
    assert_eq!(found.status.code(), Some(1));
    assert_eq!(
        text(&found.stdout),
        "h.yaml:25:13: BareMetalHost/cp-0: spec.bootMode: \"uefi\" is none of UEFI, UEFISecureBoot, legacy; write UEFI\n"
    );
    let json = host(dir.path(), &["check", "--json", "h.yaml"], "");
    assert_eq!(json.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(
        (&json["errors"], &json["findings"][0]["line"]),
        (&1.into(), &25.into())
    );
    let missing = host(dir.path(), &["check", "none.yaml"], "");
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("none.yaml"));
}

#[test]
fn warnings_are_no_failure_and_hide_the_value() {
    let dir = tempfile::tempdir().unwrap();
    let wrong = CONTROL_NODE.replace("Y2Fsdmlu", "Y2FsdmluCg==");
    let found = host(dir.path(), &["check", "-"], &wrong);
    assert!(found.status.success());
    let line = text(&found.stdout);
    assert!(line.starts_with(
        "<stdin>:11:13: warning: Secret/cp-0-bmc-secret: data.password: ends with a line end"
    ));
    assert!(!line.contains("calvin") && !line.contains("Y2Fs"));
}

#[test]
fn an_inventory_becomes_records_that_pass_the_check() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("site")).unwrap();
    fs::write(dir.path().join("site/hosts.yaml"), INVENTORY).unwrap();
    let render = |more: &[&str]| {
        let arguments = [&["render", "site/hosts.yaml"], more].concat();
        host(dir.path(), &arguments, "")
    };
    let without_password = render(&[]);
    assert_eq!(without_password.status.code(), Some(1));
    assert!(text(&without_password.stderr).contains("bmc.password"));
    fs::write(dir.path().join("site/bmc.password"), "calvin\n").unwrap();
    let printed = render(&[]);
    assert!(printed.status.success());
    assert!(text(&printed.stdout).contains("password: Y2Fsdmlu\n"));
    assert!(!text(&printed.stderr).contains("calvin"));
    assert!(render(&["-o", "all.yaml"]).status.success());
    assert_eq!(
        fs::read(dir.path().join("all.yaml")).unwrap(),
        printed.stdout
    );
    let mode = |path: &str| {
        let metadata = fs::metadata(dir.path().join(path)).unwrap();
        metadata.permissions().mode() & 0o777
    };
    assert_eq!(mode("all.yaml"), 0o600);
    assert_eq!(render(&["-o", "all.yaml"]).status.code(), Some(1));
    assert!(
        render(&["-o", "all.yaml", "--force", "--json"])
            .status
            .success()
    );
    assert!(render(&["--dir", "out"]).status.success());
    assert_eq!((mode("out"), mode("out/cp-1.yaml")), (0o700, 0o600));
    let checked = host(
        dir.path(),
        &[
            "check",
            "out/cp-0.yaml",
            "out/cp-1.yaml",
            "out/cp-2.yaml",
            "out/worker-0.yaml",
            "out/worker-1.yaml",
        ],
        "",
    );
    assert!(checked.status.success(), "{}", text(&checked.stdout));
    assert_eq!(
        text(&checked.stderr),
        "0 errors, 1 warning in 5 hosts, 4 secrets, 3 machines\n"
    );
    assert!(
        host(dir.path(), &["check", "all.yaml"], "")
            .status
            .success()
    );
}

#[test]
fn passwords_come_from_standard_input_too() {
    let dir = tempfile::tempdir().unwrap();
    let inventory = INVENTORY.replace("passwordFile: bmc.password", "passwordFile: '-'");
    fs::write(dir.path().join("hosts.yaml"), &inventory).unwrap();
    let printed = host(dir.path(), &["render", "hosts.yaml"], "calvin\n");
    assert!(text(&printed.stdout).contains("password: Y2Fsdmlu\n"));
    let twice = host(dir.path(), &["render", "-"], &inventory);
    assert_eq!(twice.status.code(), Some(1));
    let empty = host(dir.path(), &["render", "hosts.yaml"], "\n");
    assert_eq!(empty.status.code(), Some(1));
    assert!(text(&empty.stderr).contains("is empty"));
}

#[test]
fn checks_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let listed = host(dir.path(), &["check", "--list"], "");
    assert!(listed.status.success());
    assert!(text(&listed.stdout).contains("boot-mac"));
}
