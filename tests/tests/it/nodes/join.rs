//! `atoll node config` and `atoll node image`: the configuration of a node that joins, by the records of a cluster.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use system_tests::process::program;

use super::cluster::{Cluster, text};

const PEM: &str = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";
const CONFIG_MAPS: &str = "/api/v1/namespaces/kube-system/configmaps";

/// The records that name the machine-config server, and the keys of its nodes.
async fn add_records(cluster: &Cluster) -> Result<()> {
    let infrastructure = json!({
        "apiVersion": "config.openshift.io/v1", "kind": "Infrastructure",
        "metadata": { "name": "cluster" }, "spec": {},
        "status": { "apiServerInternalURI": "https://api-int.demo.example.com:6443" },
    });
    let path = "/apis/config.openshift.io/v1/infrastructures";
    cluster.create(path, &infrastructure).await?;
    let keys = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": { "name": "99-master-ssh" },
        "spec": { "config": { "passwd": { "users": [{ "name": "core", "sshAuthorizedKeys": ["ssh-ed25519 AAAA cluster"] }] } } },
    });
    let path = "/apis/machineconfiguration.openshift.io/v1/machineconfigs";
    cluster.create(path, &keys).await
}

async fn add_authority(cluster: &Cluster) -> Result<()> {
    let authority = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "root-ca" }, "data": { "ca.crt": PEM },
    });
    cluster.create(CONFIG_MAPS, &authority).await
}

/// Runs `atoll` on files of the cluster's folder.
fn atoll_on_files(cluster: &Cluster, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(program("atoll")?);
    let command = command.args(arguments).current_dir(cluster.scratch.path());
    text(&command.output().context("running atoll")?)
}

fn refusal(cluster: &Cluster, arguments: &[&str]) -> Result<String> {
    let output = cluster.atoll(arguments)?;
    ensure!(!output.status.success(), "{arguments:?} succeeded");
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_gets_the_configuration_that_the_records_name() -> Result<()> {
    let Some(cluster) = Cluster::start().await? else {
        return Ok(());
    };
    // Plain Kubernetes lacks all of it, a half-installed platform a part.
    let config = ["node", "config", "master-1"];
    let said = refusal(&cluster, &config)?;
    for part in [
        "no Infrastructure \"cluster\"",
        "ConfigMap kube-system/root-ca",
        "--config-server and --config-ca",
    ] {
        ensure!(said.contains(part), "{part}: {said}");
    }
    cluster.add_platform().await?;
    add_records(&cluster).await?;
    let said = refusal(&cluster, &config)?;
    ensure!(said.contains("kube-system/root-ca"), "{said}");
    ensure!(!said.contains("Infrastructure"), "{said}");
    add_authority(&cluster).await?;

    let file = |name: &str| cluster.scratch.path().join(name).display().to_string();
    fs::write(file("me.pub"), "ssh-ed25519 BBBB me\n")?;
    let network = "interfaces:\n- {name: ens3, addresses: [192.0.2.11/24]}\n";
    fs::write(file("network.yaml"), network)?;
    let (network, key) = (file("network.yaml"), file("me.pub"));
    let own = ["master-1", "--network", &network, "--ssh-key", &key];
    let node = text(&cluster.atoll(&[&["node", "config"], &own[..]].concat())?)?;
    let node: Value = serde_json::from_str(&node)?;
    let source = &node["ignition"]["config"]["merge"][0]["source"];
    let expected = "https://api-int.demo.example.com:22623/config/master";
    ensure!(source == expected, "{node}");
    let keys = &node["passwd"]["users"][0]["sshAuthorizedKeys"];
    let expected = json!(["ssh-ed25519 AAAA cluster", "ssh-ed25519 BBBB me"]);
    ensure!(*keys == expected, "{node}");
    let authorities = &node["ignition"]["security"]["tls"]["certificateAuthorities"];
    let encoded = data_encoding::BASE64.encode(PEM.as_bytes());
    let source = authorities[0]["source"].as_str().unwrap_or_default();
    ensure!(source.ends_with(&encoded), "{node}");

    // The image has the same node in it, and installs it.
    let make = ["image", "make-test-iso", "live.iso", "--rootfs-mib", "1"];
    atoll_on_files(&cluster, &make)?;
    let (base, output) = (file("live.iso"), file("node.iso"));
    let image = [
        "--base",
        &base,
        "--output",
        &output,
        "--install-to",
        "/dev/sda",
    ];
    let said = text(&cluster.atoll(&[&["node", "image"], &own[..], &image].concat())?)?;
    ensure!(said.contains("installs master-1 on /dev/sda"), "{said}");
    let shown = atoll_on_files(&cluster, &["image", "show", "node.iso", "--ignition"])?;
    fs::write(file("live.ign"), &shown)?;
    atoll_on_files(&cluster, &["ignition", "validate", "live.ign"])?;
    let live = ignition::IgnitionConfig::parse(shown.as_bytes())?;
    let path = ignition::live_installer::NODE_CONFIG_PATH;
    let embedded = live.find_file(path).context("no node in the image")?;
    let embedded = embedded.contents.inline_bytes()?.context("not inline")?;
    ensure!(serde_json::from_slice::<Value>(&embedded)? == node);
    Ok(())
}
