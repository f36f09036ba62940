//! `atoll mirror verify docker://…` and `delete` resolve a configuration in the target.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::content::{push, reference};
use crate::mirror_place::output;
use crate::server::Server;

/// Pushes a release of one component; its image.
async fn release(server: &Server) -> String {
    let console = push(server, "dev/art:console", b"console".to_vec(), json!({})).await;
    let console = reference(server, "dev/art:x").with_digest(console);
    let references = json!({"spec": {"tags": [{"name": "console", "from": {"name": console}}]}});
    let metadata = json!({"version": "4.14.1"});
    let files = [
        ("image-references", references),
        ("release-metadata", metadata),
    ];
    let layer = archive("release-manifests", &files);
    let digest = push(server, "dev/release:1", layer, json!({})).await;
    reference(server, "dev/release:x")
        .with_digest(digest)
        .to_string()
}

fn archive(folder: &str, files: &[(&str, Value)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let content = content.to_string();
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, format!("{folder}/{name}"), content.as_bytes())
            .unwrap();
    }
    tar.into_inner().unwrap()
}

/// Writes a chart without templates.
fn chart(folder: &Path, image: &str) {
    fs::create_dir_all(folder.join("templates")).unwrap();
    fs::write(folder.join("Chart.yaml"), "name: web").unwrap();
    let pod = json!({"kind": "Pod", "spec": {"containers": [{"image": image}]}});
    fs::write(folder.join("templates/pod.yaml"), pod.to_string()).unwrap();
}

async fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
    command.arg("mirror").args(arguments).current_dir(folder);
    command.args(["--source-use-http", "--dest-use-http"]);
    output(command).await
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_and_charts_are_verified_and_deleted() {
    let (source, target) = (Server::start().await, Server::start().await);
    let release = release(&source).await;
    push(&source, "acme/web:v1", b"web".to_vec(), json!({})).await;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    chart(
        &folder.join("web"),
        &format!("{}/acme/web:v1", source.address),
    );
    let named =
        format!("platform: {{release: '{release}'}}, helm: {{local: [{{name: web, path: web}}]}}");
    let api = "apiVersion: mirror.openshift.io/v2alpha1\nkind:";
    let set = format!("{api} ImageSetConfiguration\nmirror: {{{named}}}\n");
    let delete = format!("{api} DeleteImageSetConfiguration\ndelete: {{{named}}}\n");
    fs::write(folder.join("set.yaml"), set).unwrap();
    fs::write(folder.join("delete.yaml"), delete).unwrap();
    let to = format!("docker://{}/ns", target.address);
    let to = to.as_str();
    let verify = ["verify", "--config", "set.yaml", to];
    let list = "oc-mirror-workspace/delete/delete-images.yaml";
    for (arguments, is_success, printed) in [
        (
            &["--config", "set.yaml", "--ignore-release-signature", to][..],
            true,
            "3 images",
        ),
        (&verify, true, "verified: 3 images"),
        (
            &["delete", "--generate", "--config", "delete.yaml", to],
            true,
            "lists 3 images",
        ),
        (
            &["delete", "--delete-yaml-file", list, to],
            true,
            "deleted 3 of 3 images",
        ),
        (&verify, false, "not found"),
    ] {
        let output = run(folder, arguments).await;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert_eq!(output.status.success(), is_success, "{arguments:?}: {said}");
        assert!(said.contains(printed), "{arguments:?}: {said}");
        if arguments.contains(&"--generate") {
            let list = fs::read_to_string(folder.join(list)).unwrap();
            for kind in ["ocpRelease", "ocpReleaseContent", "helmImage"] {
                assert!(list.contains(&format!("type: {kind}\n")), "{kind}: {list}");
            }
        }
    }
}
