//! Manifests that the service adds to an installation, as pure texts.
//!
//! All of them go to the folder `openshift`, with source `system`.
//! Source: assisted-service, internal/network/manifests_generator.go.

mod catalogs;
mod chrony;
mod dnsmasq;
mod encryption;
mod iscsi;
mod machine_config;
mod operator_resources;
mod operators;

use std::borrow::Cow;

use model::Error;
use model::host::HostRole;
use model::infra_env::InfraEnv;

pub use catalogs::replaced_sources;
pub use machine_config::SystemManifest;
pub use operator_resources::custom_manifests;

use crate::InstallationPolicy;
use crate::Snapshot;
use crate::network::networking;

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
    manifests.extend(catalogs::manifests(&snapshot.cluster, &policy.catalogs)?);
    manifests.extend(operators::manifests(snapshot, policy)?);
    manifests.extend(operator_resources::config_map(snapshot)?);
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
    for manifest in &mut manifests {
        if let Cow::Owned(replaced) = policy.api_group_map.replaced(&manifest.content) {
            manifest.content = replaced;
        }
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

#[cfg(test)]
mod tests;
