//! `atoll node approve`: requests that a real kube-apiserver has recorded, with their accounts.

use anyhow::{Context as _, Result, ensure};
use reqwest::Method;
use system_tests::NODE_TOKEN;

use super::cluster::{Cluster, text};
use super::requests::{CSRS, serving};

async fn approved(cluster: &Cluster) -> Result<Vec<String>> {
    let listed = cluster.server.ask(Method::GET, CSRS, None).await?.json()?;
    let items = listed["items"].as_array().context("no list")?;
    let approved = items
        .iter()
        .filter(|item| item["status"]["conditions"][0]["type"] == "Approved");
    Ok(approved
        .map(|item| {
            item["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_requests_of_the_node_are_approved() -> Result<()> {
    let Some(cluster) = Cluster::start().await? else {
        return Ok(());
    };
    cluster.admit_requests().await?;
    for (name, node, address, is_own) in [
        ("own", "master-1", "192.0.2.11", true),
        // Of the same account, with the name of another node, and an address that is not its own.
        ("other-name", "master-0", "192.0.2.11", true),
        ("other-address", "master-1", "192.0.2.99", true),
        // Of another account that claims to be the node.
        ("other-account", "master-1", "192.0.2.11", false),
    ] {
        let body = serving(name, node, address)?;
        let answer = if is_own {
            cluster
                .server
                .ask_as(NODE_TOKEN, Method::POST, CSRS, Some(&body))
                .await?
        } else {
            cluster.server.ask(Method::POST, CSRS, Some(&body)).await?
        };
        ensure!(answer.status == 201, "{name}: {}", answer.text());
    }
    let command = ["node", "approve", "master-1", "--address", "192.0.2.11"];
    let shown = text(&cluster.atoll(&[&command[..], &["--dry-run"]].concat())?)?;
    ensure!(shown.contains("own: would be approved"), "{shown}");
    ensure!(approved(&cluster).await?.is_empty());

    let shown = text(&cluster.atoll(&command)?)?;
    for part in [
        "own: approved: serving certificate of node master-1, requested by system:node:master-1",
        "other-name: not approved: subject",
        "other-address: not approved: alternative name 192.0.2.99",
        "other-account: not approved: requestor test",
    ] {
        ensure!(shown.contains(part), "{part}: {shown}");
    }
    ensure!(approved(&cluster).await? == ["own"]);

    // Without an address, the remedy is named.
    let body = serving("later", "master-1", "192.0.2.11")?;
    cluster
        .server
        .ask_as(NODE_TOKEN, Method::POST, CSRS, Some(&body))
        .await?;
    let shown = text(&cluster.atoll(&["node", "approve", "master-1"])?)?;
    ensure!(
        shown.contains("name the addresses of the node with --address"),
        "{shown}"
    );
    ensure!(approved(&cluster).await? == ["own"]);
    Ok(())
}
