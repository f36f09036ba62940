//! Exit codes of the mirroring tool under oc-mirror's name.

use std::fs;

use serde_json::json;

use crate::content::push;
use crate::mirror_list::mirror;
use crate::server::Server;

#[tokio::test(flavor = "multi_thread")]
async fn exit_codes_name_the_incomplete_part() {
    let server = Server::start().await;
    push(&server, "acme/tool:v1", b"tool".to_vec(), json!({})).await;
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("set.yaml");
    let source = &server.address;
    let text = format!(
        "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\n\
         mirror: {{additionalImages: [{{name: {source}/acme/none:v1}}, {{name: {source}/acme/tool:v1}}]}}\n"
    );
    fs::write(&config, text).unwrap();
    for (generation, skip_tls, code, is_packed) in [
        ("--v1", "--source-skip-tls", 1, false),
        ("--v2", "--src-tls-verify=false", 8, true),
    ] {
        let out = folder.path().join(&generation[2..]);
        let target = format!("file://{}", out.display());
        let config = config.display().to_string();
        let run = move || mirror(&[generation, "-c", &config, skip_tls, &target]);
        let output = tokio::task::spawn_blocking(run).await.unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{generation}: {printed}");
        assert!(printed.contains("acme/none:v1"), "{generation}: {printed}");
        let name = if generation == "--v1" {
            "mirror_seq1_000000.tar"
        } else {
            "mirror_000001.tar"
        };
        let archive = out.join(name);
        assert_eq!(archive.exists(), is_packed, "{generation}: {printed}");
    }
}
