//! Time servers of the cluster's machines.

use std::fmt::Write as _;

use model::Error;
use model::host::HostRole;
use model::infra_env::InfraEnv;
use model::steps::{NtpSource, SourceState};
use serde_json::json;

use super::machine_config::{IGNITION_VERSION, SystemManifest, file, machine_config, yaml};
use crate::Snapshot;
use crate::steps::union;

const MODE: u32 = 0o644;

pub(super) fn manifests(
    snapshot: &Snapshot,
    infra_envs: &[InfraEnv],
) -> Result<Vec<SystemManifest>, Error> {
    let servers = servers(snapshot, infra_envs);
    if servers.is_empty() {
        return Ok(Vec::new());
    }
    let content = configuration(&servers);
    let config = json!({
        "ignition": { "version": IGNITION_VERSION },
        "storage": { "files": [file("/etc/chrony.conf", MODE, &content)] },
    });
    let has_arbiter = snapshot
        .hosts
        .iter()
        .any(|host| crate::install_config::effective_role(host) == HostRole::Arbiter);
    let mut roles = vec![(HostRole::Master, "masters"), (HostRole::Worker, "workers")];
    if has_arbiter {
        roles.push((HostRole::Arbiter, "arbiters"));
    }
    roles
        .into_iter()
        .map(|(role, group)| {
            let name = format!("50-{group}-chrony-configuration");
            let manifest = machine_config(&name, role, &config, &[]);
            yaml(format!("{name}.yaml"), &manifest)
        })
        .collect()
}

/// The user's time servers; the newer list replaces all others, else those of the hosts are added.
fn servers(snapshot: &Snapshot, infra_envs: &[InfraEnv]) -> Vec<String> {
    let cluster = &snapshot.cluster;
    let chosen = infra_envs
        .iter()
        .map(|infra_env| infra_env.ntp_sources.as_str());
    let chosen = union(std::iter::once(cluster.ntp_sources.as_str()).chain(chosen));
    if !chosen.is_empty() {
        return chosen.into_iter().map(str::to_owned).collect();
    }
    let used: Vec<String> = snapshot
        .hosts
        .iter()
        .flat_map(|host| {
            serde_json::from_str::<Vec<NtpSource>>(&host.record.ntp_sources).unwrap_or_default()
        })
        .filter(|source| source.source_state == Some(SourceState::Synced))
        .map(|source| source.source_name)
        .collect();
    let additional = infra_envs
        .iter()
        .map(|infra_env| infra_env.additional_ntp_sources.as_str());
    let lists = std::iter::once(cluster.additional_ntp_source.as_str())
        .chain(additional)
        .chain(used.iter().map(String::as_str));
    union(lists).into_iter().map(str::to_owned).collect()
}

fn configuration(servers: &[String]) -> String {
    let mut text = String::new();
    for server in servers {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "server {server} iburst");
    }
    text.push_str(
        "driftfile /var/lib/chrony/drift\nmakestep 1.0 3\nrtcsync\nlogdir /var/log/chrony\n",
    );
    text
}
