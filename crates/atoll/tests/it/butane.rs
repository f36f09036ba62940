//! `atoll butane`: flags, exit codes and local files.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

const CLEAN: &str = "variant: fcos\nversion: 1.5.0\nstorage:\n  files:\n    - path: /etc/a\n      contents: {local: a}\n";
const WARNED: &str = "variant: fcos\nversion: 1.5.0\nstorages: {}\n";
const WRAPPED: &str = "variant: openshift\nversion: 4.14.0\nmetadata:\n  name: a\n  labels: {machineconfiguration.openshift.io/role: worker}\n";

fn run(folder: &TempDir, arguments: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_atoll"))
        .arg("butane")
        .args(arguments)
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).ok();
    child.wait_with_output().unwrap()
}

fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("files")).unwrap();
    fs::write(folder.path().join("files/a"), "text").unwrap();
    fs::write(folder.path().join("secret"), "s").unwrap();
    symlink("../secret", folder.path().join("files/out")).unwrap();
    fs::write(folder.path().join("clean.bu"), CLEAN).unwrap();
    folder
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json_of(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn documents_come_from_files_and_standard_input() {
    let folder = folder();
    let expected = json!({
        "ignition": {"version": "3.4.0"},
        "storage": {"files": [{"path": "/etc/a", "contents": {"compression": "", "source": "data:,text"}}]},
    });
    assert_eq!(
        json_of(&run(&folder, &["-d", "files", "clean.bu"], "")),
        expected
    );
    assert_eq!(
        json_of(&run(&folder, &["--files-dir", "files"], CLEAN)),
        expected
    );
    let pretty = run(&folder, &["-p", "-d", "files", "-"], CLEAN);
    assert_eq!(json_of(&pretty), expected);
    assert!(pretty.stdout.starts_with(b"{\n  \"ignition\""));
}

#[test]
fn warnings_fail_with_strict_only() {
    let folder = folder();
    let relaxed = run(&folder, &[], WARNED);
    assert!(relaxed.status.success());
    let warning = "<stdin>:3:1: warning: storages: unknown key, and is ignored\n";
    assert_eq!(stderr(&relaxed), warning);
    let strict = run(&folder, &["--strict"], WARNED);
    assert_eq!((strict.status.code(), strict.stdout.len()), (Some(1), 0));
    assert!(stderr(&strict).contains("--strict"), "{}", stderr(&strict));
    let checked = run(&folder, &["-c"], WARNED);
    assert_eq!((checked.status.code(), checked.stdout.len()), (Some(0), 0));
}

#[test]
fn refused_documents_give_no_output() {
    let folder = folder();
    let refused = run(&folder, &["clean.bu"], "");
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(1), 0));
    assert!(
        stderr(&refused).starts_with("clean.bu:6:25: error: storage.files[0].contents.local: "),
        "{}",
        stderr(&refused)
    );
    let escape = CLEAN.replace("local: a", "local: out");
    let refused = run(&folder, &["-d", "files"], &escape);
    assert!(
        stderr(&refused).contains("leads out of the folder"),
        "{}",
        stderr(&refused)
    );
    for (arguments, text) in [(["missing.bu"], "missing.bu"), (["-dmissing"], "missing")] {
        let failed = run(&folder, &arguments, CLEAN);
        assert_eq!(failed.status.code(), Some(1));
        assert!(stderr(&failed).contains(text), "{}", stderr(&failed));
    }
}

#[test]
fn outputs_replace_files() {
    let folder = folder();
    let path = folder.path().join("out.yaml");
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert!(run(&folder, &["-o", "out.yaml"], WRAPPED).status.success());
    let written = fs::read_to_string(&path).unwrap();
    assert!(written.contains("kind: MachineConfig"), "{written}");
    assert_eq!(mode(), 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(
        run(&folder, &["-r", "-o", "out.yaml"], WRAPPED)
            .status
            .success()
    );
    let written = fs::read_to_string(&path).unwrap();
    assert_eq!(written, "{\"ignition\":{\"version\":\"3.4.0\"}}\n");
    assert_eq!(mode(), 0o644);
    let device = run(&folder, &["-o", "/dev/null"], WRAPPED);
    assert!(device.status.success(), "{}", stderr(&device));
}
