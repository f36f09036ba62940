//! Response records: owners, counters, hosts and networks filled in.

use model::LargeText;
use model::cluster::Cluster;
use model::host::{Host, HostStatus};
use model::infra_env::InfraEnv;
use rules::HostState;
use rules::Snapshot;
use serde::Serialize;

/// Owner of all records: without authentication every caller is the administrator.
/// Source: assisted-service, pkg/ocm/utils.go.
const OWNER: &str = "admin";
/// Domain of an owner without e-mail address. Source: assisted-service, pkg/ocm/utils.go.
const EMAIL_DOMAIN: &str = "Unknown";
/// Records of earlier versions have no list of features. The web UI parses the text, which must not be empty.
const NO_FEATURES: &str = "{}";

/// Numbers of a cluster's hosts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct HostCounts {
    #[serde(rename = "ready_host_count", skip_serializing_if = "is_zero")]
    pub(crate) ready: i64,
    #[serde(rename = "enabled_host_count", skip_serializing_if = "is_zero")]
    pub(crate) enabled: i64,
    #[serde(rename = "total_host_count", skip_serializing_if = "is_zero")]
    pub(crate) total: i64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(super) fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl HostCounts {
    /// Counts hosts of a status.
    pub(crate) fn add(&mut self, status: HostStatus, number: i64) {
        self.total += number;
        if !matches!(status, HostStatus::Disabled | HostStatus::DisabledUnbound) {
            self.enabled += number;
        }
        if status == HostStatus::Known {
            self.ready += number;
        }
    }
}

/// A cluster; with its hosts if `with_hosts`.
pub(crate) fn cluster(snapshot: &Snapshot, with_hosts: bool) -> Cluster {
    let mut cluster = listed_cluster(snapshot.cluster.clone());
    let mut counts = HostCounts::default();
    for host in &snapshot.hosts {
        counts.add(host.record.status, 1);
    }
    cluster.ready_host_count = counts.ready;
    cluster.enabled_host_count = counts.enabled;
    cluster.total_host_count = counts.total;
    cluster.host_networks = rules::cluster::update::host_networks(&snapshot.hosts);
    if with_hosts {
        cluster.hosts = snapshot.hosts.iter().map(host).collect();
    }
    cluster
}

/// A cluster without members that depend on its hosts, but with those that clients find on every cluster.
pub(crate) fn listed_cluster(record: Cluster) -> Cluster {
    Cluster {
        user_name: or(record.user_name, OWNER),
        email_domain: or(record.email_domain, EMAIL_DOMAIN),
        feature_usage: or(record.feature_usage, NO_FEATURES),
        // A capability of organisations, which every caller has without authentication.
        org_soft_timeouts_enabled: true,
        ..record
    }
}

/// An infra-env, with its owner.
pub(crate) fn infra_env(record: InfraEnv) -> InfraEnv {
    InfraEnv {
        user_name: or(record.user_name, OWNER),
        email_domain: or(record.email_domain, EMAIL_DOMAIN),
        ..record
    }
}

fn or(text: String, default: &str) -> String {
    if text.is_empty() {
        return default.to_owned();
    }
    text
}

/// A host. Clients index by `requested_hostname`, so it is never absent; long lists of free addresses are omitted.
pub(crate) fn host(state: &HostState) -> Host {
    named(&state.record, state.name())
}

/// A host in the record of its deleted cluster: without the reports of its agent, which are large, and without secrets.
pub(super) fn left_host(state: &HostState) -> Host {
    Host {
        validations_info: LargeText::default(),
        connectivity: LargeText::default(),
        inventory: LargeText::default(),
        free_addresses: LargeText::default(),
        api_vip_connectivity: String::new(),
        tang_connectivity: String::new(),
        ntp_sources: String::new(),
        disks_info: String::new(),
        images_status: String::new(),
        domain_name_resolutions: String::new(),
        ignition_config_overrides: String::new(),
        fencing_credentials: String::new(),
        ..host(state)
    }
}

/// [`host`] of a record whose inventory is not parsed.
pub(crate) fn host_record(record: &Host) -> Host {
    named(record, rules::name_of(record))
}

fn named(record: &Host, name: String) -> Host {
    Host {
        free_addresses: LargeText::default(),
        user_name: or(record.user_name.clone(), OWNER),
        requested_hostname: name,
        ..record.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requested_hostname_defaults_to_the_host_id() {
        let record = Host {
            free_addresses: "[]".into(),
            ..Host::default()
        };
        let shown = host_record(&record);
        assert_eq!(shown.requested_hostname, record.id.to_string());
        assert!(shown.free_addresses.is_empty());
    }

    #[test]
    fn owners_are_never_absent() {
        let shown = cluster(&Snapshot::default(), false);
        let texts = [&shown.user_name, &shown.email_domain, &shown.feature_usage];
        assert_eq!(texts, ["admin", "Unknown", "{}"]);
        assert!(shown.org_soft_timeouts_enabled);
        assert_eq!(host_record(&Host::default()).user_name, "admin");
        assert_eq!(infra_env(InfraEnv::default()).user_name, "admin");
        let owned = Cluster {
            user_name: "someone".to_owned(),
            ..Cluster::default()
        };
        assert_eq!(listed_cluster(owned).user_name, "someone");
    }

    #[test]
    fn counters_are_set_without_hosts() {
        let known = Host {
            status: HostStatus::Known,
            ..Host::default()
        };
        let snapshot = Snapshot {
            hosts: vec![HostState::new(known)].into(),
            ..Snapshot::default()
        };
        let shown = cluster(&snapshot, false);
        assert_eq!(shown.feature_usage, "{}");
        assert_eq!(
            (
                shown.total_host_count,
                shown.enabled_host_count,
                shown.ready_host_count
            ),
            (1, 1, 1)
        );
        assert!(shown.hosts.is_empty());
    }
}
