//! `atoll mirror`: validation of configurations, and the lock of workspaces.

use std::fs;
use std::process::{Command, Output};

use mirror::workspace::Workspace;
use tempfile::TempDir;

fn atoll(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_atoll"))
        .arg("mirror")
        .args(arguments)
        .output()
        .unwrap()
}

/// Standard output of a successful command.
fn stdout(arguments: &[&str]) -> String {
    let output = atoll(arguments);
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {printed}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn init_prints_a_valid_configuration() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("config");
    let path = path.to_str().unwrap();
    let registry = ["--registry", "registry.example.org/mirror/metadata:v1"];
    for (arguments, kept) in [
        (vec!["init"], "metadata: in the folder ./metadata"),
        (
            [&["init", "--output", "json"], registry.as_slice()].concat(),
            "metadata: in the image registry.example.org/mirror/metadata:v1",
        ),
    ] {
        fs::write(path, stdout(&arguments)).unwrap();
        let printed = stdout(&["check", path]);
        assert!(
            printed.contains("releases of stable-4.20: the newest release"),
            "{printed}"
        );
        assert!(printed.lines().any(|line| line == kept), "{printed}");
    }
}

#[test]
fn every_problem_has_line_and_column() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("config.yaml");
    let text = "apiVersion: mirror.openshift.io/v1alpha2\nkind: ImageSetConfiguration\nmirror:\n  \
        operatorz: []\n  additionalImages: [{name: 5}]\n";
    fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    let output = atoll(&["check", path]);
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8(output.stdout).unwrap();
    let expected = [
        "4:3: mirror.operatorz: not known: operators may be meant",
        "5:29: mirror.additionalImages[0].name: expected an image, as in registry.example.org/tools/tool:1.0, or oci:// \
         and a folder, found the number 5: put it in quotes, as \"5\"",
    ];
    let expected = expected.map(|line| format!("{path}:{line}"));
    assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
    let counted = String::from_utf8(output.stderr).unwrap();
    assert!(counted.contains("2 problems"), "{counted}");
}

#[test]
fn boot_images_are_summarized() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("config.yaml");
    for (boot_images, expected) in [
        ("{}", "the architectures of the releases"),
        ("{architectures: [x86_64, arm64]}", "x86_64, arm64"),
    ] {
        let text = format!(
            "apiVersion: mirror.openshift.io/v1alpha2\nkind: ImageSetConfiguration\nmirror:\n  \
             platform: {{channels: [{{name: stable-4.18}}]}}\n  bootImages: {boot_images}\n"
        );
        fs::write(&path, text).unwrap();
        let printed = stdout(&["check", path.to_str().unwrap()]);
        let expected = format!("- boot images of releases: {expected}");
        assert!(printed.lines().any(|line| line == expected), "{printed}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let output = atoll(&["check", "/nowhere/config.yaml"]);
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(
        printed.contains("/nowhere/config.yaml") && printed.contains("No such file"),
        "{printed}"
    );
}

#[test]
fn a_workspace_is_locked_by_every_subcommand() {
    let dir = TempDir::new().unwrap();
    let workspace = dir.path().join("oc-mirror-workspace");
    let configuration = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let set = "apiVersion: mirror.openshift.io/v1alpha2\nkind: ImageSetConfiguration\nmirror: {}\n";
    let set = configuration("set.yaml", set);
    let delete =
        "apiVersion: mirror.openshift.io/v2alpha1\nkind: DeleteImageSetConfiguration\ndelete: {}\n";
    let delete = configuration("delete.yaml", delete);
    let (own, above) = (workspace.to_str().unwrap(), dir.path().to_str().unwrap());
    let nobody = "docker://127.0.0.1:1/ns";
    let verbs = [
        vec!["verify", "--config", &set, "--dir", own, nobody],
        vec![
            "delete",
            "--generate",
            "--config",
            &delete,
            "--dir",
            own,
            nobody,
        ],
        vec![
            "catalog",
            "prune",
            "--dir",
            above,
            "-p",
            "a",
            "-t",
            "127.0.0.1:1/i:1",
            "oci:///nowhere",
        ],
        vec!["catalog", "copy", "--dir", above, "127.0.0.1:1/i:1", nobody],
    ];
    let refused = |arguments: &[&str]| {
        let output = atoll(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let first = Workspace::enter(&workspace).unwrap();
    for verb in &verbs {
        let printed = refused(verb);
        assert!(
            printed.contains("another run works in"),
            "{verb:?}: {printed}"
        );
    }
    drop(first);
    // Temporary files of a killed run are removed.
    let left = workspace.join(".tmp-left");
    fs::create_dir(&left).unwrap();
    refused(&verbs[2]);
    assert!(!left.exists());
}
