//! `atoll node backup`, and the members of etcd in `atoll node status`.

use std::fs;

use anyhow::{Result, ensure};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::cluster::{Cluster, etcd_options, text};

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_checked_and_never_replaces_a_file() -> Result<()> {
    let Some(cluster) = Cluster::start().await? else {
        return Ok(());
    };
    let path = cluster.scratch.path().join("etcd.db");
    let output = path.display().to_string();
    let etcd = etcd_options(&cluster);
    let options: Vec<_> = etcd.iter().map(String::as_str).collect();

    let status = [&["node", "status", "--json"][..], &options[..]].concat();
    let status: Value = serde_json::from_str(&text(&cluster.atoll(&status)?)?)?;
    let member = &status["etcd_members"]["members"][0];
    ensure!(member["role"] == "voter", "{status}");
    ensure!(member["health"]["state"] == "healthy", "{status}");

    let backup = [
        &["node", "backup", "--json", "-o", &output][..],
        &options[..],
    ]
    .concat();
    let saved: Value = serde_json::from_str(&text(&cluster.atoll(&backup)?)?)?;
    let content = fs::read(&path)?;
    ensure!(saved["size_bytes"] == content.len(), "{saved}");
    ensure!(
        saved["sha256"] == hex::encode(Sha256::digest(&content)),
        "{saved}"
    );

    // A second one does not replace it.
    let refused = cluster.atoll(&backup)?;
    ensure!(!refused.status.success());
    ensure!(fs::read(&path)? == content);

    // Without a way to etcd, the nodes are shown all the same, with the reason.
    let status = cluster.atoll(&["node", "status", "--json"])?;
    let status: Value = serde_json::from_str(&text(&status)?)?;
    ensure!(status["etcd_members"].is_null(), "{status}");
    let failure = status["etcd_failure"].as_str().unwrap_or_default();
    ensure!(failure.contains("etcd-endpoints"), "{failure}");
    Ok(())
}
