//! `atoll catalog`: listing, validation and pruning, with their errors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Runs `atoll catalog` with `arguments`.
fn atoll(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_atoll"))
        .arg("catalog")
        .args(arguments)
        .output()
        .unwrap()
}

/// Standard output of a successful command.
fn stdout(arguments: &[&str]) -> String {
    let output = atoll(arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        stderr(&output)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Standard error of a failed command.
fn refused(arguments: &[&str]) -> String {
    let output = atoll(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    stderr(&output)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn lines(values: &[Value]) -> String {
    let lines: Vec<_> = values.iter().map(ToString::to_string).collect();
    lines.join("\n") + "\n"
}

/// A package with the channels `stable` (all of `versions`, each replacing the one before) and `fast` (the last one).
fn package(name: &str, versions: &[&str]) -> String {
    let bundle = |version: &str| format!("{name}.v{version}");
    let mut before = None;
    let mut entries = Vec::new();
    let mut documents =
        vec![json!({ "schema": "olm.package", "name": name, "defaultChannel": "stable" })];
    for version in versions {
        let mut entry = json!({ "name": bundle(version) });
        if let Some(before) = before.replace(bundle(version)) {
            entry["replaces"] = json!(before);
        }
        entries.push(entry);
        let property = json!({ "packageName": name, "version": version });
        documents.push(json!({ "schema": "olm.bundle", "package": name, "name": bundle(version),
            "image": "quay.io/x/y:1", "properties": [{ "type": "olm.package", "value": property }] }));
    }
    let last = [json!({ "name": before })];
    for (channel, entries) in [("stable", entries.as_slice()), ("fast", last.as_slice())] {
        documents.push(json!({ "schema": "olm.channel", "package": name, "name": channel, "entries": entries }));
    }
    lines(&documents)
}

struct World(TempDir);

impl World {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// Writes a catalog of these files; its path.
    fn catalog(&self, name: &str, texts: &[String]) -> String {
        let folder = self.path(name);
        fs::create_dir(&folder).unwrap();
        for (number, text) in texts.iter().enumerate() {
            fs::write(folder.join(format!("{number}.json")), text).unwrap();
        }
        folder.to_str().unwrap().to_owned()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

#[test]
fn all_problems_have_file_and_line() {
    let world = World::new();
    let good = world.catalog("good", &[package("a", &["1.0.0"])]);
    assert_eq!(stdout(&["validate", &good]), "");
    assert_eq!(
        stdout(&["validate", &good, "-o", "json"]).trim(),
        r#"{"passed":true}"#
    );

    let wrong = package("a", &["1.0.0"]).replace("quay.io/x/y:1", "quay.io/X");
    let other = package("b", &["1.0.0"]).replace("\"version\":\"1.0.0\"", "\"version\":\"one\"");
    let bad = world.catalog("bad", &[wrong, other]);
    let output = atoll(&["validate", &bad, "-o", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let verdict: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(verdict["passed"], false);
    assert!(
        verdict["error"]["message"]
            .as_str()
            .unwrap()
            .contains("0.json:2"),
        "{verdict}"
    );
    let problems = verdict["problems"].as_array().unwrap();
    let files: Vec<_> = problems
        .iter()
        .map(|problem| problem["file"].as_str().unwrap())
        .collect();
    assert!(
        files.contains(&"0.json") && files.contains(&"1.json"),
        "{verdict}"
    );
    let text = String::from_utf8(atoll(&["validate", &bad]).stdout).unwrap();
    assert!(text.contains("0.json:2: package a:"), "{text}");
    let unreadable = world.catalog("unreadable", &["{\"schema\":1}\n\n{".to_owned()]);
    let text = String::from_utf8(atoll(&["validate", &unreadable]).stdout).unwrap();
    assert!(
        text.contains("0.json:1:") && text.contains("0.json:3:"),
        "{text}"
    );
    let yaml = String::from_utf8(atoll(&["validate", &bad, "-o", "yaml"]).stdout).unwrap();
    assert!(
        yaml.contains("\npassed: false\nproblems:\n- file: \"0.json\"\n"),
        "{yaml}"
    );
}

#[test]
fn catalogs_that_cannot_be_opened_are_named() {
    assert!(refused(&["validate", "/none/here"]).contains("/none/here"));
    let away = "127.0.0.1:1/no/registry:v1";
    assert!(refused(&["list", away, "--insecure"]).contains("127.0.0.1:1"));
    assert!(refused(&["list", "name:tag"]).contains("name:tag"));
    let world = World::new();
    let file = world.path("index.db");
    fs::write(&file, "no database").unwrap();
    let file = file.to_str().unwrap();
    assert!(refused(&["render", file]).contains("importing"));
    assert!(refused(&["render", "oci:/none"]).contains("/none"));
    assert!(refused(&["list", away, "--authfile", "/none/auth"]).contains("/none/auth"));
}

#[test]
fn packages_channels_and_versions_are_listed() {
    let world = World::new();
    let texts = [package("b", &["1.0.0"]), package("a", &["1.0.0", "1.1.0"])];
    let catalog = world.catalog("catalog", &texts);
    let list = stdout(&["list", &catalog]);
    let rows: Vec<_> = list
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .collect();
    assert_eq!(rows[1], ["a", "stable", "a.v1.1.0", "2"]);
    assert_eq!(rows[2], ["b", "stable", "b.v1.0.0", "2"]);
    let channels = stdout(&["list", &catalog, "a"]);
    assert!(
        channels.contains("fast") && channels.contains("default"),
        "{channels}"
    );
    let versions = stdout(&["list", &catalog, "a", "stable"]);
    assert!(
        versions
            .lines()
            .any(|line| line.contains("1.1.0") && line.ends_with("a.v1.0.0"))
    );
    let all: Value = serde_json::from_str(&stdout(&["list", &catalog, "-o", "json"])).unwrap();
    assert_eq!(all[0]["defaultChannel"], "stable");
    assert_eq!(all[0]["channels"][1]["entries"][1]["replaces"], "a.v1.0.0");
    assert!(refused(&["list", &catalog, "c"]).contains("no package \"c\""));
    assert!(refused(&["list", &catalog, "a", "c"]).contains("fast, stable"));
}

#[test]
fn one_broken_package_does_not_hide_the_others() {
    let world = World::new();
    let kuad = package("kuad", &["1.0.0", "1.1.0"]).replacen(
        "quay.io/x/y:1\"",
        "quay.io/x/y:1\",\"relatedImages\":[{\"name\":\"x\",\"image\":\"oci://r/x:1\"}]",
        1,
    );
    assert!(kuad.contains("oci://"));
    let broken = package("broken", &["1.0.0"]).replace("\"stable\"", "\"none\"");
    let broken = broken.replacen("\"none\"", "\"stable\"", 1);
    let readme = "Read: me: first".to_owned();
    let catalog = world.catalog("catalog", &[package("a", &["1.0.0"]), kuad, broken, readme]);
    let output = atoll(&["list", &catalog]);
    let (list, notices) = (String::from_utf8_lossy(&output.stdout), stderr(&output));
    assert!(output.status.success(), "{notices}");
    assert!(list.contains("\na ") && list.contains("\nkuad "), "{list}");
    assert!(!list.contains("broken"), "{list}");
    for part in [
        "package kuad is refused by opm from 1.64 on: ",
        "[pull-spec]",
        "package broken is left out: ",
        "not read: 3.json:1: ",
    ] {
        assert!(notices.contains(part), "{part}: {notices}");
    }
    let channels = stdout(&["list", &catalog, "kuad", "stable"]);
    assert!(channels.contains("1.1.0"), "{channels}");
    assert!(refused(&["list", &catalog, "broken"]).contains("3.json:1"));
    // Validation is strict.
    let all = String::from_utf8(atoll(&["validate", &catalog]).stdout).unwrap();
    assert!(
        all.contains("[pull-spec]") && all.contains("3.json:1"),
        "{all}"
    );
    let new = world.catalog("new", &[package("a", &["1.0.0", "2.0.0"])]);
    let changes = stdout(&["diff", &catalog, &new]);
    assert!(changes.contains("+ package a bundle a.v2.0.0"), "{changes}");
    let to = world.path("small");
    let to = to.to_str().unwrap();
    stdout(&["prune", &catalog, "kuad", "--heads", "--to", to]);
    stdout(&["validate", to]);
}

#[test]
fn empty_yaml_documents_do_not_count() {
    let world = World::new();
    let text = "---\n---\n# nothing\n---\nschema: x\nname: one\n---\n# end\n---\n".to_owned();
    let catalog = world.catalog("catalog", &[text]);
    stdout(&["validate", &catalog]);
    let rendered = stdout(&["render", &catalog]);
    assert_eq!(rendered, "{\"name\":\"one\",\"schema\":\"x\"}\n");
}

#[test]
fn templates_are_named_in_validation() {
    let world = World::new();
    let template = "schema: olm.semver\nstable: {bundles: [{image: 'quay.io/x/y:1'}]}\n".to_owned();
    let catalog = world.catalog("catalog", &[package("a", &["1.0.0"]), template]);
    let output = atoll(&["validate", &catalog]);
    let warned = stderr(&output);
    assert!(output.status.success(), "{warned}");
    assert!(
        warned.contains("1.json:1: warning: ") && warned.contains("olm.semver"),
        "{warned}"
    );
    let verdict = stdout(&["validate", &catalog, "-o", "json"]);
    let verdict: Value = serde_json::from_str(&verdict).unwrap();
    assert_eq!(
        (&verdict["passed"], &verdict["warnings"][0]["line"]),
        (&json!(true), &json!(1))
    );
}

#[test]
fn differences_are_printed() {
    let world = World::new();
    let old = world.catalog("old", &[package("a", &["1.0.0"]), package("b", &["1.0.0"])]);
    let new = world.catalog(
        "new",
        &[package("a", &["1.0.0", "2.0.0"]), package("c", &["1.0.0"])],
    );
    let changes = stdout(&["diff", &old, &new]);
    for line in [
        "~ package a channel stable: head a.v1.0.0 -> a.v2.0.0",
        "+ package a bundle a.v2.0.0",
        "- package b",
        "+ package c",
    ] {
        assert!(
            changes.lines().any(|found| found == line),
            "{line}: {changes}"
        );
    }
    assert_eq!(stdout(&["diff", &old, &old]), "");
    let first = stdout(&["diff", &old, &new, "-o", "json"]);
    let first: Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["change"], &first["package"]),
        (&json!("head"), &json!("a"))
    );
}

#[test]
fn a_pruned_catalog_is_valid() {
    let world = World::new();
    let texts = [
        package("a", &["1.0.0", "1.1.0", "1.2.0"]),
        package("b", &["1.0.0"]),
    ];
    let catalog = world.catalog("catalog", &texts);
    let small = world.path("small");
    let to = small.to_str().unwrap();
    stdout(&["prune", &catalog, "a:stable@1.1.0..", "--to", to]);
    let bundles = stdout(&["list", to, "a", "stable"]);
    assert!(
        !bundles.contains("1.0.0 ") && bundles.contains("1.1.0 "),
        "{bundles}"
    );
    assert_eq!(stdout(&["list", to]).lines().count(), 2);
    stdout(&["validate", to]);
    assert!(refused(&["prune", &catalog, "a", "--to", to]).contains("not empty"));

    let heads = world.path("heads");
    let to = heads.to_str().unwrap();
    stdout(&["prune", &catalog, "a", "--heads", "--to", to, "-o", "yaml"]);
    assert_eq!(stdout(&["list", to, "a", "stable"]).lines().count(), 2);

    let none = world.path("none");
    let to = none.to_str().unwrap();
    assert!(refused(&["prune", &catalog, "a", "c", "--to", to]).contains("no package c"));
    assert!(refused(&["prune", &catalog, "a:none", "--to", to]).contains("fast, stable"));
    assert!(!none.exists() && is_alone(&world, &none));
}

/// Whether no temporary file is left beside `path`.
fn is_alone(world: &World, path: &Path) -> bool {
    let name = path.file_name().unwrap().to_str().unwrap();
    let mut names = fs::read_dir(world.0.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    !names.any(|found| found.to_string_lossy().contains(name))
}

#[test]
fn documents_are_normalized() {
    let world = World::new();
    let text = "schema: x\nname: one\nb: 0777\na: yes\n".to_owned();
    let catalog = world.catalog("catalog", &[text]);
    let json = stdout(&["render", &catalog]);
    assert_eq!(
        json,
        "{\"a\":true,\"b\":511,\"name\":\"one\",\"schema\":\"x\"}\n"
    );
    let again = world.catalog("again", &[stdout(&["render", &catalog, "-o", "yaml"])]);
    assert_eq!(stdout(&["render", &again]), json);
    let bad = world.catalog("bad", &["{\"schema\":\"x\"}\n{".to_owned()]);
    let output = atoll(&["render", &bad]);
    assert!(
        !output.status.success() && stderr(&output).contains("0.json"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn upgrade_graphs_are_printed() {
    let world = World::new();
    let catalog = world.catalog("catalog", &[package("a", &["1.0.0", "1.1.0"])]);
    let drawing = stdout(&["graph", &catalog, "a"]);
    assert!(
        drawing.starts_with("graph LR") && drawing.contains("-->"),
        "{drawing}"
    );
    assert!(stdout(&["graph", &catalog, "a", "fast", "-o", "dot"]).starts_with("digraph"));
    assert!(refused(&["graph", &catalog, "b"]).contains("no package \"b\""));
}

#[test]
fn a_cache_is_built_for_the_server() {
    let world = World::new();
    let catalog = world.catalog("catalog", &[package("a", &["1.0.0"])]);
    let dir = world.path("caches");
    stdout(&[
        "cache",
        &catalog,
        "--dir",
        dir.to_str().unwrap(),
        "--name",
        "own",
    ]);
    assert!(dir.join("own.cache").is_file());
}
