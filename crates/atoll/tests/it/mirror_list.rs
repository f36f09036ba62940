//! `atoll mirror list operators`, and the tool under oc-mirror's name.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Runs the tool as `mirror`.
pub(crate) fn mirror(arguments: &[&str]) -> Output {
    let dir = TempDir::new().unwrap();
    let program = dir.path().join("mirror");
    symlink(env!("CARGO_BIN_EXE_atoll"), &program).unwrap();
    let mut command = Command::new(program);
    command.args(arguments).current_dir(dir.path());
    command.output().unwrap()
}

fn stdout(arguments: &[&str]) -> String {
    let output = mirror(arguments);
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {printed}");
    String::from_utf8(output.stdout).unwrap()
}

fn refused(arguments: &[&str]) -> String {
    let output = mirror(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    let printed = String::from_utf8(output.stderr).unwrap();
    let last = printed.lines().find(|line| line.starts_with("error: "));
    last.unwrap_or_else(|| panic!("{printed}")).to_owned()
}

/// A catalog with one package with a display name and one without.
fn catalog(folder: &Path) {
    let mut documents = Vec::new();
    for (name, shown, versions) in [
        ("etcd", Some("Etcd of many hosts"), ["0.9.0", "0.10.0"]),
        ("plain", None, ["1.0.0", "1.1.0"]),
    ] {
        documents.push(json!({"schema": "olm.package", "name": name, "defaultChannel": "stable"}));
        let mut entries = Vec::new();
        for version in versions {
            let bundle = format!("{name}.v{version}");
            let property = json!({"packageName": name, "version": version});
            let mut properties = vec![json!({"type": "olm.package", "value": property})];
            if let Some(shown) = shown {
                let value = json!({"displayName": shown});
                properties.push(json!({"type": "olm.csv.metadata", "value": value}));
            }
            documents.push(
                json!({"schema": "olm.bundle", "package": name, "name": bundle,
                "image": "quay.io/x/y:1", "properties": properties}),
            );
            entries.push(json!({"name": bundle, "replaces": ""}));
        }
        entries[1]["replaces"] = entries[0]["name"].clone();
        documents.push(
            json!({"schema": "olm.channel", "package": name, "name": "stable", "entries": entries}),
        );
        documents.push(json!({"schema": "olm.channel", "package": name, "name": "alpha", "entries": [entries[0]]}));
    }
    let lines: Vec<_> = documents.iter().map(Value::to_string).collect();
    fs::write(folder.join("all.json"), lines.join("\n")).unwrap();
}

#[test]
fn lists_have_the_columns_of_oc_mirror() {
    let dir = TempDir::new().unwrap();
    catalog(dir.path());
    let catalog = dir.path().to_str().unwrap();
    let of_catalog = ["list", "operators", "--catalog", catalog];
    assert_eq!(
        stdout(&of_catalog),
        "NAME   DISPLAY NAME        DEFAULT CHANNEL\n\
         etcd   Etcd of many hosts  stable\n\
         plain                      stable\n"
    );
    let of_package = [&of_catalog[..], &["--package", "etcd"]].concat();
    assert_eq!(
        stdout(&of_package),
        "NAME  DISPLAY NAME        DEFAULT CHANNEL\n\
         etcd  Etcd of many hosts  stable\n\n\
         PACKAGE  CHANNEL  HEAD\n\
         etcd     alpha    etcd.v0.9.0\n\
         etcd     stable   etcd.v0.10.0\n"
    );
    let of_channel = [&of_package[..], &["--channel", "stable"]].concat();
    assert_eq!(stdout(&of_channel), "VERSIONS\n0.9.0\n0.10.0\n");
    let unknown = [&of_catalog[..], &["--package", "etce"]].concat();
    let error = refused(&unknown);
    assert!(
        error.contains("package \"etce\" not found; etcd may be meant"),
        "{error}"
    );
    let unknown = [&of_package[..], &["--channel", "stabel"]].concat();
    let error = refused(&unknown);
    assert!(
        error.contains("channel \"stabel\" not found; stable may be meant"),
        "{error}"
    );
}

#[test]
fn the_command_line_is_that_of_oc_mirror() {
    let version = stdout(&["--v1", "version", "--output", "json"]);
    let version: Value = serde_json::from_str(&version).unwrap();
    let own = format!("v{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(version["clientVersion"]["gitVersion"], own);
    let short = stdout(&["version", "--short"]);
    assert_eq!(short, format!("Client Version: {own}\n"));
    assert!(stdout(&["init"]).contains("kind: ImageSetConfiguration"));
    assert!(stdout(&["--help"]).contains("--config"));
}

#[test]
fn usage_errors_are_those_of_oc_mirror() {
    for (arguments, expected) in [
        (&["--nonsense"][..], "unknown flag: --nonsense"),
        (&["/tmp/x"], "no scheme delimiter in destination argument"),
        (&["foo://x"], "unknown destination scheme \"foo\""),
        (
            &["file://x"],
            "must specify a configuration file with --config",
        ),
        (
            &["docker://h:5000"],
            "must specify --config or --from with registry destination",
        ),
        (
            &["--from", "x", "file://y"],
            "must specify a registry destination",
        ),
        (
            &["docker://h:5000/a:1", "--from", "x"],
            "must not include an image tag",
        ),
        (&["-c", "none.yaml", "file://x"], "none.yaml"),
        (&[], "requires at least 1 arg(s)"),
    ] {
        let error = refused(arguments);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}
