//! Manifests that the service adds to an installation, as pure texts.
//!
//! All of them go to the folder `openshift`, with source `system`.
//! Source: assisted-service, internal/network/manifests_generator.go.

mod chrony;
mod dnsmasq;
mod encryption;
mod iscsi;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::Error;
use model::host::HostRole;
use model::infra_env::InfraEnv;
use serde_json::{Value, json};

use crate::{InstallationPolicy, Snapshot, networking};

/// Version of the ignition inside of machine configurations.
const IGNITION_VERSION: &str = "3.2.0";

/// A manifest by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemManifest {
    /// File name in the folder `openshift`.
    pub file_name: String,
    /// YAML.
    pub content: String,
}

/// Every manifest that the cluster needs.
///
/// Errors: `Internal` – a record does not serialise.
pub fn system(
    snapshot: &Snapshot,
    infra_envs: &[InfraEnv],
    policy: &InstallationPolicy,
) -> Result<Vec<SystemManifest>, Error> {
    let mut manifests = chrony::manifests(snapshot, infra_envs)?;
    manifests.extend(iscsi::manifests()?);
    manifests.extend(encryption::manifests(&snapshot.cluster)?);
    if policy.single_node_dnsmasq && networking::is_single_node(&snapshot.cluster) {
        manifests.extend(dnsmasq::manifest(snapshot)?);
    }
    if schedules_masters(snapshot) {
        manifests.push(SystemManifest {
            file_name: "cluster-scheduler-02-config.yml.patch_ai_set_masters_schedulable"
                .to_owned(),
            content: "- op: replace\n  path: /spec/mastersSchedulable\n  value: true\n".to_owned(),
        });
    }
    Ok(manifests)
}

/// The user requested it, or there are too few workers for the cluster's own services.
/// Source: assisted-service, internal/common/common.go, ShouldMastersBeSchedulable.
fn schedules_masters(snapshot: &Snapshot) -> bool {
    let workers = snapshot
        .hosts
        .iter()
        .filter(|host| crate::install_config::effective_role(host) == HostRole::Worker)
        .count();
    snapshot.cluster.schedulable_masters == Some(true) || workers < 2
}

/// A machine configuration of a role.
fn machine_config(name: &str, role: HostRole, config: &Value, kernel_arguments: &[&str]) -> Value {
    let mut spec = json!({ "config": config });
    if !kernel_arguments.is_empty() {
        spec["kernelArguments"] = json!(kernel_arguments);
    }
    json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {
            "labels": { "machineconfiguration.openshift.io/role": role.as_str() },
            "name": name,
        },
        "spec": spec,
    })
}

/// A file of root's in an ignition.
fn file(path: &str, mode: u32, content: &str) -> Value {
    let source = format!(
        "data:text/plain;charset=utf-8;base64,{}",
        STANDARD.encode(content)
    );
    json!({
        "path": path,
        "mode": mode,
        "overwrite": true,
        "contents": { "source": source },
    })
}

fn yaml(file_name: String, value: &Value) -> Result<SystemManifest, Error> {
    let content = serde_yaml::to_string(value)
        .map_err(|error| Error::internal(format!("writing manifest {file_name}"), error))?;
    Ok(SystemManifest { file_name, content })
}

#[cfg(test)]
mod tests;
