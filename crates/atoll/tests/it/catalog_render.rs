//! `atoll catalog render` of templates and bundles.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::content::push;
use crate::mirror_place::output;
use crate::server::Server;

const PACKAGE_LABEL: &str = "operators.operatorframework.io.bundle.package.v1";

/// The manifests and metadata of a version of the package `web`.
fn files(version: &str) -> Vec<(String, String)> {
    let csv = json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": format!("web.v{version}")},
        "spec": {"version": version, "displayName": "Web", "description": "A web server"}});
    let annotations = format!("annotations:\n  {PACKAGE_LABEL}: web\n");
    vec![
        ("manifests/csv.yaml".to_owned(), csv.to_string()),
        ("metadata/annotations.yaml".to_owned(), annotations),
    ]
}

/// Pushes a bundle image of the package `web`; its name.
async fn bundle(server: &Server, version: &str) -> String {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, content) in files(version) {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, content.as_bytes())
            .unwrap();
    }
    let name = format!("x/web:v{version}");
    let labels = json!({"Labels": {PACKAGE_LABEL: "web"}});
    push(server, &name, tar.into_inner().unwrap(), labels).await;
    format!("{}/{name}", server.address)
}

async fn render(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
    command
        .args(["catalog", "render", "--insecure"])
        .args(arguments);
    command.current_dir(folder).stdin(Stdio::null());
    output(command).await
}

/// The documents of a successful run, each as its schema and name.
async fn rendered(folder: &Path, arguments: &[&str]) -> (Vec<String>, Vec<Value>) {
    let done = render(folder, arguments).await;
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{arguments:?}: {error}");
    let text = String::from_utf8(done.stdout).unwrap();
    let documents: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let names = documents.iter().map(|it| {
        let text = |name: &str| it[name].as_str().unwrap_or_default();
        format!("{} {}", text("schema"), text("name"))
    });
    (names.collect(), documents)
}

async fn refused(folder: &Path, arguments: &[&str]) -> String {
    let done = render(folder, arguments).await;
    assert_eq!(done.status.code(), Some(1), "{arguments:?}");
    String::from_utf8_lossy(&done.stderr).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn templates_are_expanded_with_bundles_of_a_registry() {
    let server = Server::start().await;
    let (old, new) = (
        bundle(&server, "1.0.0").await,
        bundle(&server, "1.0.1").await,
    );
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path();
    let semver = format!(
        "# License\n---\nSchema: olm.semver\nStable:\n  Bundles:\n  - Image: {old}\n  - Image: {new}\n"
    );
    fs::write(folder.join("semver.yaml"), &semver).unwrap();
    let expected = [
        "olm.package web",
        "olm.channel stable-v1.0",
        "olm.bundle web.v1.0.0",
        "olm.bundle web.v1.0.1",
    ];
    let (names, documents) = rendered(folder, &["semver.yaml"]).await;
    assert_eq!(names, expected);
    assert_eq!(documents[0]["description"], "A web server");
    assert_eq!(
        documents[1]["entries"],
        json!([{"name": "web.v1.0.0"}, {"name": "web.v1.0.1", "skips": ["web.v1.0.0"]}])
    );
    assert_eq!(documents[3]["image"], new);
    assert_eq!(documents[3]["properties"][1]["type"], "olm.bundle.object");
    let level = "--migrate-level=bundle-object-to-csv-metadata";
    let (_, migrated) = rendered(folder, &["semver.yaml", level]).await;
    assert_eq!(migrated[3]["properties"][1]["value"]["displayName"], "Web");

    // In a catalog, too, and a validation of the result passes.
    fs::create_dir(folder.join("catalog")).unwrap();
    fs::rename(folder.join("semver.yaml"), folder.join("catalog/t.yaml")).unwrap();
    assert_eq!(rendered(folder, &["catalog"]).await.0, expected);
    let lines: Vec<_> = documents.iter().map(Value::to_string).collect();
    fs::create_dir(folder.join("done")).unwrap();
    fs::write(folder.join("done/catalog.json"), lines.join("\n")).unwrap();
    let mut validate = Command::new(env!("CARGO_BIN_EXE_atoll"));
    validate
        .args(["catalog", "validate"])
        .arg(folder.join("done"));
    assert!(output(validate).await.status.success());

    // Bundles alone.
    assert_eq!(rendered(folder, &[&new]).await.0, ["olm.bundle web.v1.0.1"]);
    for (path, content) in files("2.0.0") {
        let path = folder.join("bundle").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    assert_eq!(
        rendered(folder, &["bundle"]).await.0,
        ["olm.bundle web.v2.0.0"]
    );

    // Components of one catalog.
    let component = |name: &str| {
        format!(
            "- name: {name}\n  destination: {{path: web}}\n  strategy: {{name: semver, template: {{schema: olm.builder.semver, config: {{input: catalog/t.yaml, output: c.yaml}}}}}}\n"
        )
    };
    let composite = format!(
        "schema: olm.composite\ncomponents:\n{}{}",
        component("v1"),
        component("v2")
    );
    fs::write(folder.join("composite.yaml"), composite).unwrap();
    assert_eq!(
        rendered(folder, &["composite.yaml", "--component=v2"])
            .await
            .0,
        expected
    );
    let error = refused(folder, &["composite.yaml"]).await;
    assert!(
        error.contains("(v1, v2): choose one with --component"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_templates_have_places() {
    let server = Server::start().await;
    let good = bundle(&server, "1.0.0").await;
    push(&server, "x/other:v1", b"other".to_vec(), json!({})).await;
    let address = &server.address;
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path();
    for (text, expected) in [
        (
            format!("schema: olm.semver\nstable:\n  bundles:\n  - image: {good}\n  - image: {address}/x/none:v1\n  - image: {address}/x/other:v1\n"),
            &["t.yaml:5:12: ", "none:v1: ", "t.yaml:6:12: ", "it is no bundle image: it has no label"][..],
        ),
        (
            "schema: olm.template.basic\nentries:\n- {schema: olm.bundle, image: 'not an image'}\n".to_owned(),
            &["t.yaml:3:31: not an image: "],
        ),
        (
            "schema: olm.semver\nstable: {bundels: []}\n".to_owned(),
            &["t.yaml:2:10: stable has no member \"bundels\""],
        ),
        (
            "schema: olm.composite\ncomponents:\n- strategy: {template: {schema: olm.builder.raw, config: {input: none.yaml}}}\n".to_owned(),
            &["t.yaml:3:66: none.yaml: No such file"],
        ),
    ] {
        fs::write(folder.join("t.yaml"), &text).unwrap();
        let error = refused(folder, &["t.yaml"]).await;
        for part in expected {
            assert!(error.contains(part), "{text}: {part}: {error}");
        }
    }
}
