//! Response records: counters, hosts and networks filled in.

use model::cluster::Cluster;
use model::host::{Host, HostStatus};
use rules::{HostState, Snapshot};

/// A cluster; with its hosts if `with_hosts`.
pub(crate) fn cluster(snapshot: &Snapshot, with_hosts: bool) -> Cluster {
    let mut cluster = snapshot.cluster.clone();
    let statuses = snapshot.hosts.iter().map(|host| (host.record.status, 1));
    count_hosts(&mut cluster, statuses);
    cluster.host_networks = rules::update::host_networks(&snapshot.hosts);
    if with_hosts {
        cluster.hosts = snapshot
            .hosts
            .iter()
            .map(|state| host(&state.record))
            .collect();
    }
    cluster
}

/// Sets the counters of hosts by status.
pub(crate) fn count_hosts(
    cluster: &mut Cluster,
    statuses: impl Iterator<Item = (HostStatus, i64)>,
) {
    for (status, number) in statuses {
        cluster.total_host_count += number;
        if !matches!(status, HostStatus::Disabled | HostStatus::DisabledUnbound) {
            cluster.enabled_host_count += number;
        }
        if status == HostStatus::Known {
            cluster.ready_host_count += number;
        }
    }
}

/// A host. Clients index by `requested_hostname`, so it is never absent; long lists of free addresses are omitted.
pub(crate) fn host(record: &Host) -> Host {
    let mut host = Host {
        free_addresses: String::new(),
        ..record.clone()
    };
    if host.requested_hostname.is_empty() {
        host.requested_hostname = HostState::new(record.clone()).name();
    }
    host
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requested_hostname_defaults_to_the_host_id() {
        let record = Host {
            free_addresses: "[]".to_owned(),
            ..Host::default()
        };
        let shown = host(&record);
        assert_eq!(shown.requested_hostname, record.id.to_string());
        assert!(shown.free_addresses.is_empty());
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
