//! `atoll ignition`: validation, merging, conversion and summaries of files.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

struct Folder(TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        Self(folder)
    }

    /// Runs `atoll ignition` in the folder.
    fn run(&self, arguments: &[&str], stdin: &str) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_atoll"))
            .arg("ignition")
            .args(arguments)
            .current_dir(self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(stdin.as_bytes()).ok();
        child.wait_with_output().unwrap()
    }

    fn stdout(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments, "");
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    fn refused(&self, arguments: &[&str]) -> Output {
        let output = self.run(arguments, "");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        output
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const GOOD: &str = r#"{"ignition":{"version":"3.5.0"},"storage":{"files":[{"path":"/etc/a","mode":420,"contents":{"source":"data:,a%0A"}}]}}"#;
const BAD: &str = r#"{
  "ignition": {"version": "3.2.0"},
  "storage": {"files": [{"path": "etc/a", "mode": "0644"}], "folders": []},
  "passwd": {"users": [{"name": ""}]}
}"#;

#[test]
fn all_problems_are_reported_with_their_position() {
    let folder = Folder::new(&[("good.ign", GOOD), ("bad.ign", BAD)]);
    assert_eq!(folder.stdout(&["validate", "good.ign"]), "");
    let output = folder.refused(&["validate", "good.ign", "bad.ign"]);
    assert_eq!(
        stdout(&output),
        "bad.ign:3:34: storage.files[0].path: \"etc/a\" is not an absolute path\n\
         bad.ign:3:51: storage.files[0].mode: expected a whole number, found text\n\
         bad.ign:3:61: warning: storage.folders: unknown member\n\
         bad.ign:4:24: warning: passwd.users[0].name: the member is missing or empty\n"
    );
    let output = folder.run(&["validate", "--json", "-"], BAD);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report[0]["valid"], false);
    assert_eq!(
        report[0]["problems"][2],
        json!({"line": 3, "column": 61, "path": "storage.folders", "severity": "warning", "reason": "unknown member"})
    );
}

#[test]
fn ignored_members_are_refused_if_asked_for() {
    let text = r#"{"ignition":{"version":"3.1.0"},"kernelArguments":{}}"#;
    let folder = Folder::new(&[("a.ign", text)]);
    assert!(
        folder
            .stdout(&["validate", "a.ign"])
            .contains("warning: kernelArguments: ")
    );
    let output = folder.refused(&["validate", "--strict", "a.ign"]);
    assert!(stdout(&output).starts_with("a.ign:1:33: kernelArguments: "));
    let output = folder.refused(&["convert", "a.ign"]);
    assert!(stderr(&output).contains("a.ign:1:33: kernelArguments: "));
}

#[test]
fn children_win_over_parents() {
    let child =
        r#"{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"/etc/a","mode":384}]}}"#;
    let other =
        r#"{"ignition":{"version":"3.1.0"},"storage":{"links":[{"path":"/etc/a","target":"/b"}]}}"#;
    let folder = Folder::new(&[
        ("good.ign", GOOD),
        ("child.ign", child),
        ("other.ign", other),
    ]);
    let merged = folder.stdout(&["merge", "good.ign", "child.ign"]);
    let merged: Value = serde_json::from_str(&merged).unwrap();
    assert_eq!(merged["ignition"]["version"], "3.5.0");
    let file = json!({"path": "/etc/a", "mode": 384, "contents": {"source": "data:,a%0A"}});
    assert_eq!(merged["storage"]["files"], json!([file]));
    let arguments = [
        "merge",
        "good.ign",
        "child.ign",
        "other.ign",
        "-o",
        "out.ign",
    ];
    folder.stdout(&arguments);
    let path = folder.0.path().join("out.ign");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let merged: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert_eq!(merged["storage"]["links"][0]["target"], "/b");
    assert_eq!(merged["storage"]["files"], json!([]));
    let output = folder.refused(&arguments);
    assert!(stderr(&output).contains("use --force to replace it"));
    folder.stdout(&[&arguments[..], &["--force"]].concat());
    let output = folder.refused(&["merge", "-", "-"]);
    assert!(stderr(&output).contains("one configuration only"));
}

#[test]
fn merged_contradictions_are_refused() {
    let with = |owner: &str| {
        format!(
            r#"{{"ignition":{{"version":"3.1.0"}},"storage":{{"files":[{{"path":"/a","user":{owner}}}]}}}}"#
        )
    };
    let folder = Folder::new(&[
        ("a.ign", &with(r#"{"id":1}"#)),
        ("b.ign", &with(r#"{"name":"core"}"#)),
    ]);
    let output = folder.refused(&["merge", "a.ign", "b.ign"]);
    let expected = "b.ign: storage.files[0].user: id and name exclude each other\n";
    assert!(stderr(&output).starts_with(expected), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
}

#[test]
fn conversion_finds_the_lowest_version_or_the_obstacle() {
    let newer = r#"{"ignition":{"version":"3.5.0"},"kernelArguments":{"shouldExist":["quiet"]}}"#;
    let folder = Folder::new(&[("good.ign", GOOD), ("newer.ign", newer)]);
    let version = |arguments: &[&str]| {
        let json: Value = serde_json::from_str(&folder.stdout(arguments)).unwrap();
        json["ignition"]["version"].as_str().unwrap().to_owned()
    };
    assert_eq!(version(&["convert", "good.ign"]), "3.0.0");
    assert_eq!(version(&["convert", "newer.ign", "--pretty"]), "3.3.0");
    assert_eq!(version(&["convert", "good.ign", "--to", "3.2.0"]), "3.2.0");
    let output = folder.refused(&["convert", "newer.ign", "--to", "3.2.0"]);
    let expected = "newer.ign:1:33: kernelArguments: the member exists since version 3.3.0";
    assert!(stderr(&output).starts_with(expected), "{}", stderr(&output));
    assert!(stderr(&output).contains("version 3.2.0 does not carry the content"));
    assert_eq!(
        folder
            .run(&["convert", "good.ign", "--to", "3.9.0"], "")
            .status
            .code(),
        Some(2)
    );
}

#[test]
fn the_summary_has_no_secrets_and_files_are_decoded() {
    let text = r#"{"ignition":{"version":"3.2.0","config":{"merge":[{"source":"https://api-int:22623/config/master"}]}},
        "passwd":{"users":[{"name":"core","passwordHash":"$6$secret","sshAuthorizedKeys":["ssh-rsa AAAA"]}]},
        "storage":{"files":[{"path":"/etc/a","mode":384,"contents":{"source":"data:;base64,AP8="}},
          {"path":"/etc/b","contents":{"source":"data:,b","verification":{"hash":"sha512-HASH"}}}]}}"#;
    let text = text.replace("HASH", &"0".repeat(128));
    let folder = Folder::new(&[("a.ign", &text)]);
    let shown = folder.stdout(&["show", "a.ign"]);
    assert!(
        shown.contains("  https://api-int:22623/config/master\n"),
        "{shown}"
    );
    assert!(shown.contains("  core: 1 key, password set\n"), "{shown}");
    assert!(
        shown.contains("  0600 root:root /etc/a, 2 bytes\n"),
        "{shown}"
    );
    assert!(
        !shown.contains("secret") && !shown.contains("AAAA"),
        "{shown}"
    );
    let json: Value = serde_json::from_str(&folder.stdout(&["show", "--json", "a.ign"])).unwrap();
    assert_eq!(json["users"][0]["password"], "set");
    let output = folder.run(&["show", "a.ign", "--file", "/etc/a"], "");
    assert_eq!(
        (output.status.success(), output.stdout.as_slice()),
        (true, &[0, 255][..])
    );
    let output = folder.refused(&["show", "a.ign", "--file", "/etc/b"]);
    assert!(stderr(&output).contains("another than verification.hash"));
    assert!(output.stdout.is_empty());
}

#[test]
fn input_is_bounded() {
    let folder = Folder::new(&[("large.ign", &" ".repeat(16 * 1024 * 1024 + 1))]);
    let output = folder.refused(&["validate", "large.ign"]);
    assert!(stderr(&output).contains("more than 16777216 bytes"));
    let output = folder.refused(&["validate", "missing.ign"]);
    assert!(stderr(&output).contains("reading missing.ign"));
}
