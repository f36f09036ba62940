//! `atoll node status`.

use anyhow::{Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use super::cluster::{Cluster, text};

const MACHINES: &str =
    "/apis/machine.openshift.io/v1beta1/namespaces/openshift-machine-api/machines";
const HOSTS: &str = "/apis/metal3.io/v1alpha1/namespaces/openshift-machine-api/baremetalhosts";

fn node(index: usize, is_ready: bool) -> Value {
    let (status, message) = if is_ready {
        ("True", "kubelet is posting ready status")
    } else {
        ("Unknown", "Kubelet stopped posting node status.")
    };
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": format!("master-{index}"), "labels": { "node-role.kubernetes.io/control-plane": "" } },
        "status": {
            "addresses": [{ "type": "InternalIP", "address": format!("192.0.2.1{index}") }],
            "conditions": [{ "type": "Ready", "status": status, "reason": "Test", "message": message }],
        },
    })
}

async fn add_records(cluster: &Cluster) -> Result<()> {
    for index in 0..3 {
        cluster
            .create("/api/v1/nodes", &node(index, index != 1))
            .await?;
    }
    let machine = json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": {
            "name": "demo-master-1",
            "labels": { "machine.openshift.io/cluster-api-machine-role": "master" },
            "annotations": { "metal3.io/BareMetalHost": "openshift-machine-api/host-1" },
        },
        "spec": {},
        "status": { "phase": "Running", "nodeRef": { "kind": "Node", "name": "master-1" } },
    });
    cluster.create(MACHINES, &machine).await?;
    let host = json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
        "metadata": { "name": "host-1" },
        "spec": { "online": true, "consumerRef": { "name": "demo-master-1" } },
        "status": { "poweredOn": false, "provisioning": { "state": "externally provisioned" } },
    });
    cluster.create(HOSTS, &host).await?;
    let etcd = json!({
        "apiVersion": "operator.openshift.io/v1", "kind": "Etcd",
        "metadata": { "name": "cluster" }, "spec": {},
        "status": {
            "latestAvailableRevision": 3,
            "nodeStatuses": [{ "nodeName": "master-0", "currentRevision": 2, "targetRevision": 3 }],
            "conditions": [{ "type": "EtcdMembersAvailable", "status": "True", "message": "2 of 3 members are available, master-1 is unhealthy" }],
        },
    });
    cluster
        .create("/apis/operator.openshift.io/v1/etcds", &etcd)
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_of_nodes_is_shown_on_one_screen() -> Result<()> {
    let Some(cluster) = Cluster::start().await? else {
        return Ok(());
    };
    // Plain Kubernetes has none of the platform's kinds.
    cluster.create("/api/v1/nodes", &node(9, true)).await?;
    let plain: Value =
        serde_json::from_str(&text(&cluster.atoll(&["node", "status", "--json"])?)?)?;
    ensure!(plain["nodes"][0]["node"] == "master-9", "{plain}");
    let answer = cluster
        .server
        .ask(Method::DELETE, "/api/v1/nodes/master-9", None);
    ensure!(answer.await?.status == 200);

    cluster.add_platform().await?;
    add_records(&cluster).await?;
    let report: Value =
        serde_json::from_str(&text(&cluster.atoll(&["node", "status", "--json"])?)?)?;
    let names = report["nodes"].as_array().into_iter().flatten();
    let names: Vec<_> = names.map(|row| row["node"].clone()).collect();
    ensure!(names == ["master-0", "master-1", "master-2"], "{report}");
    let failed = &report["nodes"][1];
    for (member, expected) in [
        ("is_ready", json!(false)),
        ("machine", json!("demo-master-1")),
        ("host", json!("host-1")),
        ("host_state", json!("externally provisioned")),
        ("is_powered_on", json!(false)),
    ] {
        ensure!(failed[member] == expected, "{member}: {failed}");
    }
    ensure!(report["rolling_out"] == json!(["Etcd"]), "{report}");

    let screen = text(&cluster.atoll(&["node", "status"])?)?;
    for part in [
        "master-1  not ready",
        "etcd: 2 of 3 members are available, master-1 is unhealthy",
        "master-1 is not ready: Kubelet stopped posting node status.",
    ] {
        ensure!(screen.contains(part), "{part}: {screen}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_user_is_an_error_without_the_token() -> Result<()> {
    let Some(cluster) = Cluster::start().await? else {
        return Ok(());
    };
    let kubeconfig = std::fs::read_to_string(&cluster.kubeconfig)?;
    let wrong = kubeconfig.replace("token-of-a-test", "another-token");
    std::fs::write(&cluster.kubeconfig, wrong)?;
    let output = cluster.atoll(&["node", "status"])?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success());
    ensure!(errors.contains("refuses the credentials"), "{errors}");
    ensure!(!errors.contains("another-token"), "{errors}");
    Ok(())
}
