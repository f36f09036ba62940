//! `DUMMY_IGNITION`: test mode with dummy files, without registry and installer.

use std::collections::BTreeMap;

use ignition::{IgnitionConfig, IgnitionFile, Resource, SpecVersion, Unit};
use model::host::HostRole;
use rules::Snapshot;
use rules::snapshot::roles::is_single_node;
use serde_json::json;
use uuid::{Uuid, uuid};

use crate::failure::PreparationFailure;
use crate::manifests::yaml;
use crate::nodes;
use crate::outputs::Outputs;

/// Recognizable as a dummy.
const PASSWORD: &str = "dummy-dummy-dummy-dummy";

/// The id of every cluster in this mode.
///
/// Source: assisted-service, subsystem/cluster_test.go: its black-box suite finds clusters by it.
const CLUSTER_ID: Uuid = uuid!("41940ee8-ec99-43de-8766-174381b4921d");
const CLUSTER_VERSION: &str = "/opt/openshift/manifests/cvo-overrides.yaml";
const PULL_SECRET: &str = "/root/.docker/config.json";
/// Units by which simulated hosts know that a control plane would start.
const BOOTSTRAP_UNITS: [&str; 2] = ["bootkube.service", "approve-csr.service"];

/// Dummy outputs for `snapshot`.
pub(crate) fn outputs(
    snapshot: &Snapshot,
    install_config: &str,
) -> Result<Outputs, PreparationFailure> {
    let cluster = &snapshot.cluster;
    let version = json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "metadata": { "namespace": "openshift-cluster-version", "name": "version" },
        "spec": { "clusterID": CLUSTER_ID },
    });
    let mut bootstrap = IgnitionConfig::new(SpecVersion::V3_2)
        .file(IgnitionFile::text(CLUSTER_VERSION, 0o644, &yaml(&version)))
        .file(IgnitionFile::text(PULL_SECRET, 0o600, r#"{"auths":{}}"#));
    for name in BOOTSTRAP_UNITS {
        bootstrap = bootstrap.unit(Unit::new(name, "[Service]\nExecStart=/bin/true\n"));
    }
    let server = format!(
        "https://api.{}.{}:6443",
        cluster.name, cluster.base_dns_domain
    );
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": cluster.name, "cluster": { "server": server } }],
        "contexts": [{ "name": "admin", "context": { "cluster": cluster.name, "user": "admin" } }],
        "current-context": "admin",
        "users": [{ "name": "admin", "user": {} }],
    });
    let metadata = json!({
        "clusterName": cluster.name,
        "clusterID": CLUSTER_ID,
        "infraID": format!("{}-dummy", cluster.name),
    });
    let mut files = BTreeMap::from([
        ("bootstrap.ign".to_owned(), bootstrap.to_json()),
        (
            "kubeconfig-noingress".to_owned(),
            yaml(&kubeconfig).into_bytes(),
        ),
        ("kubeadmin-password".to_owned(), PASSWORD.into()),
        (
            "metadata.json".to_owned(),
            metadata.to_string().into_bytes(),
        ),
        ("install-config.yaml".to_owned(), install_config.into()),
    ]);
    for role in [HostRole::Master, HostRole::Worker] {
        files.insert(format!("{role}.ign"), pointer(snapshot, role).to_json());
    }
    for host in &snapshot.hosts {
        let base = pointer(snapshot, nodes::role(&host.record));
        files.insert(nodes::base_name(&host.record), base.to_json());
        let config = nodes::of_host(&base, host, snapshot)?;
        files.insert(nodes::file_name(&host.record), config.to_json());
    }
    Ok(Outputs {
        cluster_id: CLUSTER_ID,
        files,
    })
}

/// The ignition of a role: it refers to the machine config server, unless a single node is installed in place.
fn pointer(snapshot: &Snapshot, role: HostRole) -> IgnitionConfig {
    let mut config = IgnitionConfig::new(SpecVersion::V3_2);
    if !is_single_node(&snapshot.cluster) {
        let (name, domain) = (&snapshot.cluster.name, &snapshot.cluster.base_dns_domain);
        let server = format!("https://api-int.{name}.{domain}:22623/config/{role}");
        config.ignition.config.merge.push(Resource::at(server));
    }
    config
}
