//! `atoll mirror --why-refused`: packages of a catalog with validation errors.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::content::{push, push_documents};
use crate::mirror_place::output;
use crate::server::Server;

/// Documents of a package with these channel entries.
fn package(address: &str, name: &str, entries: &Value) -> Vec<Value> {
    let bundles = entries.as_array().unwrap().iter().map(|entry| {
        let bundle = entry["name"].as_str().unwrap();
        let version = format!("{}.0.0", bundle.rsplit('v').next().unwrap());
        let property = json!({"packageName": name, "version": version});
        json!({
            "schema": "olm.bundle", "package": name, "name": bundle,
            "image": format!("{address}/acme/bundle:v1"),
            "properties": [{"type": "olm.package", "value": property}],
        })
    });
    let head = [
        json!({"schema": "olm.package", "name": name, "defaultChannel": "stable"}),
        json!({"schema": "olm.channel", "package": name, "name": "stable", "entries": entries}),
    ];
    head.into_iter().chain(bundles).collect()
}

/// Dry run of one package to a registry.
async fn dry_run(server: &Server, folder: &Path, package: &str, more: &[&str]) -> Output {
    let address = &server.address;
    let set = format!(
        "apiVersion: mirror.openshift.io/v1alpha2\nkind: ImageSetConfiguration\n\
         mirror: {{operators: [{{catalog: '{address}/acme/index:v1', packages: [{{name: {package}}}]}}]}}\n"
    );
    fs::write(folder.join("set.yaml"), set).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
    command.args(["mirror", "--config", "set.yaml", "--dry-run"]);
    command.args(["--source-use-http", "--dest-use-http"]);
    command.arg(format!("docker://{address}/mirrored"));
    command.args(more).current_dir(folder);
    output(command).await
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_rules_are_listed_with_entries_and_remedy() {
    let server = Server::start().await;
    push(&server, "acme/bundle:v1", b"bundle".to_vec(), json!({})).await;
    let address = &server.address;
    let older = json!([
        {"name": "older.v1"},
        {"name": "older.v2", "replaces": "older.v1"},
        {"name": "older.v3", "replaces": "older.v2", "skips": ["older.v2"]},
    ]);
    let broken = json!([{"name": "broken.v1"}, {"name": "broken.v2"}]);
    let documents = [
        package(address, "sound", &json!([{"name": "sound.v1"}])),
        package(address, "older", &older),
        package(address, "broken", &broken),
    ];
    push_documents(&server, &documents.concat()).await;
    let folder = tempfile::tempdir().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();

    // Errors of other packages do not fail the run; the flag lists them.
    let done = dry_run(&server, folder.path(), "sound", &[]).await;
    let shown = text(&done.stderr);
    assert!(done.status.success(), "{shown}");
    assert!(
        shown.contains("skipped (--why-refused names the rules): broken"),
        "{shown}"
    );
    assert!(!text(&done.stdout).contains("[channel-head]"));
    let done = dry_run(&server, folder.path(), "sound", &["--why-refused"]).await;
    assert!(done.status.success(), "{}", text(&done.stderr));
    let shown = text(&done.stdout);
    for part in [
        "package broken cannot be mirrored",
        "broken.v1, broken.v2 [channel-head]",
        "package older is mirrored with a warning",
        "stranded bundles: older.v1 [stranded]",
        "remedy: ",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }

    // A catalog that an older opm serves is mirrored with a warning, one that none serves ends the run.
    let done = dry_run(&server, folder.path(), "older", &[]).await;
    let shown = text(&done.stderr);
    assert!(done.status.success(), "{shown}");
    assert!(
        shown.contains("package older has entries that opm from"),
        "{shown}"
    );
    let refused = dry_run(&server, folder.path(), "broken", &["--why-refused"]).await;
    let shown = text(&refused.stderr);
    assert!(!refused.status.success(), "{shown}");
    assert!(
        shown.contains("broken.v1, broken.v2 [channel-head]"),
        "{shown}"
    );
}
