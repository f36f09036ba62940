//! `DUMMY_IGNITION`: test mode with dummy files, without registry and installer.

use std::collections::BTreeMap;

use ignition::{IgnitionConfig, IgnitionFile, SpecVersion};
use rules::Snapshot;
use serde_json::json;
use uuid::Uuid;

use super::failure::PreparationFailure;
use super::manifests::yaml;
use super::nodes;
use super::outputs::Outputs;

/// Recognizable as a dummy.
const PASSWORD: &str = "dummy-dummy-dummy-dummy";

/// Dummy outputs for `snapshot`; the cluster's API id is its reported id.
pub(super) fn outputs(
    snapshot: &Snapshot,
    install_config: &str,
) -> Result<Outputs, PreparationFailure> {
    let cluster = &snapshot.cluster;
    let id: Uuid = cluster.id.0;
    let version = json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "metadata": { "namespace": "openshift-cluster-version", "name": "version" },
        "spec": { "clusterID": id },
    });
    let bootstrap = IgnitionConfig::new(SpecVersion::V3_2).file(IgnitionFile::text(
        "/opt/openshift/manifests/cvo-overrides.yaml",
        0o644,
        &yaml(&version),
    ));
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
        "clusterID": id,
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
    let empty = IgnitionConfig::new(SpecVersion::V3_2);
    for name in ["master.ign", "worker.ign"] {
        files.insert(name.to_owned(), empty.to_json());
    }
    for host in &snapshot.hosts {
        files.insert(nodes::base_name(&host.record), empty.to_json());
        let config = nodes::of_host(&empty, host, snapshot)?;
        files.insert(nodes::file_name(&host.record), config.to_json());
    }
    Ok(Outputs {
        cluster_id: id,
        files,
    })
}
