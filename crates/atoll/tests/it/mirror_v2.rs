//! The mirroring tool with the habits of oc-mirror v2.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::content::push;
use crate::mirror_list::mirror;
use crate::server::Server;

/// Runs the tool with `--v2`; its output.
async fn run(arguments: Vec<String>) -> String {
    let run = move || {
        let flags = ["--v2", "--src-tls-verify=false", "--dest-tls-verify=false"];
        let own = arguments.iter().map(String::as_str);
        mirror(&flags.into_iter().chain(own).collect::<Vec<_>>())
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    format!("{}{printed}", String::from_utf8_lossy(&output.stdout))
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Names of the archives in a folder, in their order.
fn archives_of(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|it| it.contains(".tar")).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn workspaces_have_history_and_results() {
    let (source, other, target) = (
        Server::start().await,
        Server::start().await,
        Server::start().await,
    );
    push(&source, "acme/tool:v1", b"tool".to_vec(), json!({})).await;
    push(&other, "acme/tool:v1", b"other tool".to_vec(), json!({})).await;
    let pinned = push(&source, "acme/pinned:v1", b"pinned".to_vec(), json!({})).await;
    let folder = tempfile::tempdir().unwrap();
    let (config, out) = (folder.path().join("set.yaml"), folder.path().join("out"));
    let (from, elsewhere) = (&source.address, &other.address);
    let names = format!(
        "{{name: {from}/acme/tool:v1}}, {{name: {elsewhere}/acme/tool:v1}}, {{name: {from}/acme/pinned@{pinned}}}"
    );
    let written = |names: &str| {
        let text = format!(
            "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\n\
             mirror: {{additionalImages: [{names}]}}\n"
        );
        fs::write(&config, text).unwrap();
    };
    written(&names);
    let named = |path: &Path| path.display().to_string();
    let archives = format!("file://{}", named(&out));
    let pack = vec!["-c".to_owned(), named(&config), archives.clone()];
    let printed = run(pack.clone()).await;
    assert!(
        printed.contains("have the same name in the target"),
        "{printed}"
    );
    let workspace = out.join("working-dir");
    assert!(workspace.join(".history/run-000001.json").exists());
    // The same command again has nothing to pack.
    let printed = run(pack.clone()).await;
    assert!(printed.contains("No new images detected"), "{printed}");
    assert_eq!(archives_of(&out), ["mirror_000001.tar"]);

    let to = format!("docker://{}/ns", target.address);
    let publish = ["-c".into(), named(&config), "--from".into(), archives, to];
    run(publish.to_vec()).await;
    let resources = workspace.join("cluster-resources");
    let digests = text(&resources.join("idms-oc-mirror.yaml"));
    assert!(
        digests.contains(&format!("source: {from}/acme")),
        "{digests}"
    );
    let tags = text(&resources.join("itms-oc-mirror.yaml"));
    assert!(
        tags.contains(&format!("{}/ns/acme", target.address)),
        "{tags}"
    );
    // The second source of the tag did not move it.
    let tag = crate::content::reference(&target, "ns/acme/tool:v1");
    let there = target.client.manifest_digest(&tag).await.unwrap();
    let own = crate::content::reference(&source, "acme/tool:v1");
    assert_eq!(there, source.client.manifest_digest(&own).await.unwrap());
    let by_digest = format!("ns/acme/pinned:sha256-{}", pinned.hex());
    let by_digest = crate::content::reference(&target, &by_digest);
    assert!(
        target
            .client
            .manifest_digest(&by_digest)
            .await
            .unwrap()
            .is_some()
    );

    // Another image is packed alone, and with --since all of them are.
    push(&source, "acme/later:v1", b"later".to_vec(), json!({})).await;
    written(&format!("{names}, {{name: {from}/acme/later:v1}}"));
    let printed = run(pack.clone()).await;
    assert!(printed.contains("sequence 2: 1 images"), "{printed}");
    assert!(
        printed.contains("previous run in this folder are replaced"),
        "{printed}"
    );
    assert_eq!(archives_of(&out), ["mirror_000001.tar"]);
    let since = ["--since".to_owned(), "2020-01-01".to_owned()];
    let printed = run([&since[..], &pack].concat()).await;
    assert!(printed.contains("sequence 3: 4 images"), "{printed}");
}
