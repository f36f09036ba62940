//! Manifests that follow from the cluster's settings.

use std::collections::{BTreeMap, BTreeSet};

use model::host::HostRole;
use model::steps::NtpSource;
use rules::Snapshot;
use serde_json::{Value, json};

use super::manifests::yaml;
use super::nodes;

/// File name in the folder `openshift` → content, for the cluster of `snapshot`.
pub(super) fn manifests(snapshot: &Snapshot) -> BTreeMap<String, String> {
    let mut manifests = BTreeMap::new();
    let sources = time_sources(snapshot);
    if !sources.is_empty() {
        let mut roles = vec![HostRole::Master, HostRole::Worker];
        let has_arbiter = |role| {
            snapshot
                .hosts
                .iter()
                .any(|host| nodes::role(&host.record) == role)
        };
        if has_arbiter(HostRole::Arbiter) {
            roles.push(HostRole::Arbiter);
        }
        for role in roles {
            manifests.insert(
                format!("50-{role}s-chrony-configuration.yaml"),
                yaml(&chrony(role, &sources)),
            );
        }
    }
    let cluster = &snapshot.cluster;
    if cluster.schedulable_masters == Some(true)
        || cluster.schedulable_masters_forced_true == Some(true)
    {
        let patch = json!([{ "op": "replace", "path": "/spec/mastersSchedulable", "value": true }]);
        manifests.insert(
            "cluster-scheduler-02-config.yml.patch_ai_set_masters_schedulable".to_owned(),
            yaml(&patch),
        );
    }
    manifests
}

/// What the cluster names, and what hosts were seen to use.
fn time_sources(snapshot: &Snapshot) -> BTreeSet<String> {
    let cluster = &snapshot.cluster;
    let named = [&cluster.ntp_sources, &cluster.additional_ntp_source];
    let mut sources: BTreeSet<String> = named
        .iter()
        .flat_map(|list| list.split(','))
        .map(|source| source.trim().to_owned())
        .collect();
    for host in &snapshot.hosts {
        let seen: Vec<NtpSource> =
            serde_json::from_str(&host.record.ntp_sources).unwrap_or_default();
        sources.extend(seen.into_iter().map(|source| source.source_name));
    }
    sources.remove("");
    sources
}

fn chrony(role: HostRole, sources: &BTreeSet<String>) -> Value {
    let servers: Vec<String> = sources
        .iter()
        .map(|source| format!("server {source} iburst\n"))
        .collect();
    let text = format!(
        "{}driftfile /var/lib/chrony/drift\nmakestep 1.0 3\nrtcsync\nlogdir /var/log/chrony\n",
        servers.concat()
    );
    json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {
            "labels": { "machineconfiguration.openshift.io/role": role },
            "name": format!("{role}s-chrony-configuration"),
        },
        "spec": {
            "config": {
                "ignition": { "version": "3.1.0" },
                "storage": { "files": [{
                    "path": "/etc/chrony.conf",
                    "mode": 0o644,
                    "overwrite": true,
                    "contents": { "source": ignition::data_url::base64(text.as_bytes()) },
                }] },
            },
            "osImageURL": "",
        },
    })
}

#[cfg(test)]
mod tests {
    use model::host::Host;
    use rules::HostState;

    use super::*;

    #[test]
    fn nothing_to_say_means_no_manifest() {
        assert!(manifests(&Snapshot::default()).is_empty());
    }

    #[test]
    fn time_sources_reach_every_role() {
        let mut snapshot = Snapshot::default();
        snapshot.cluster.additional_ntp_source = "b.lab, a.lab".to_owned();
        let host = Host {
            ntp_sources: r#"[{"source_name":"c.lab","source_state":"synced"}]"#.to_owned(),
            ..Host::default()
        };
        snapshot.hosts.push(HostState::new(host));
        let made = manifests(&snapshot);
        let names: Vec<&str> = made.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "50-masters-chrony-configuration.yaml",
                "50-workers-chrony-configuration.yaml"
            ]
        );
        let manifest: Value =
            serde_yaml::from_str(&made["50-masters-chrony-configuration.yaml"]).unwrap();
        let source = &manifest["spec"]["config"]["storage"]["files"][0]["contents"]["source"];
        let text = ignition::data_url::decode(source.as_str().unwrap()).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.starts_with("server a.lab iburst\nserver b.lab iburst\nserver c.lab iburst\n"),
            "{text}"
        );
    }

    #[test]
    fn masters_take_work_when_asked() {
        let mut snapshot = Snapshot::default();
        snapshot.cluster.schedulable_masters_forced_true = Some(true);
        let made = manifests(&snapshot);
        assert!(
            made.keys()
                .all(|name| name.starts_with("cluster-scheduler-02-config.yml.patch"))
        );
        assert_eq!(made.len(), 1);
    }
}
