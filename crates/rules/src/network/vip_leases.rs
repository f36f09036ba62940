//! Virtual addresses that DHCP leases: state, replies of agents, timeout.

use std::net::Ipv4Addr;

use chrono::TimeDelta;
use ipnet::Ipv4Net;
use model::Error;
use model::cluster::{Cluster, ClusterStatus};
use model::events::EventSeverity;
use model::network::{ApiVip, IngressVip};
use model::steps::DhcpAllocationResponse;
use model::time::Timestamp;

use crate::bounds;
use crate::event::{NewEvent, about_cluster};
use crate::host::timeout::Timeout;
use crate::network::networking;
use crate::snapshot::host_state::ObservedTime;
use crate::snapshot::{Snapshot, VipLeases};

/// Time that DHCP servers have for leases, from the definition of the machine network on.
/// Source: assisted-service, internal/cluster/cluster.go, DhcpLeaseTimeoutMinutes.
pub(crate) const LEASE_TIMEOUT: TimeDelta = TimeDelta::minutes(2);

/// A checked reply to the step that leases the addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasedVips {
    api_vip: Ipv4Addr,
    ingress_vip: Ipv4Addr,
    api_lease: String,
    ingress_lease: String,
}

impl LeasedVips {
    /// Checks a reply.
    ///
    /// Errors: `Conflict` – the cluster leases no addresses, or is being installed with others; `Invalid` – an address
    /// outside of the machine network, or a malformed lease.
    /// Source: assisted-service, internal/bminventory/inventory.go, processDhcpAllocationResponse.
    pub(crate) fn check(cluster: &Cluster, reply: &DhcpAllocationResponse) -> Result<Self, Error> {
        if !networking::uses_dhcp(cluster) {
            return Err(Error::conflict(format!(
                "cluster {} does not lease its virtual addresses: vip_dhcp_allocation is false",
                cluster.id
            )));
        }
        let network = cluster.machine_networks.first();
        let network = network.map_or("", |network| network.cidr.as_str());
        let leased = Self {
            api_vip: address_of("api_vip_address", &reply.api_vip_address, network)?,
            ingress_vip: address_of("ingress_vip_address", &reply.ingress_vip_address, network)?,
            api_lease: lease_of("api_vip_lease", &reply.api_vip_lease)?,
            ingress_lease: lease_of("ingress_vip_lease", &reply.ingress_vip_lease)?,
        };
        if leased.api_vip == leased.ingress_vip {
            return Err(refuse("ingress_vip_address", "equals api_vip_address"));
        }
        let is_installing = matches!(
            cluster.status,
            ClusterStatus::PreparingForInstallation
                | ClusterStatus::Installing
                | ClusterStatus::Finalizing
        );
        if is_installing && !leased.are_addresses_of(cluster) {
            return Err(Error::conflict(format!(
                "cluster {} is being installed with other virtual addresses than the leased {} and {}",
                cluster.id, leased.api_vip, leased.ingress_vip
            )));
        }
        Ok(leased)
    }

    /// Stores the addresses and the leases of a cluster that can still be changed.
    /// Source: assisted-service, internal/cluster/cluster.go, SetVipsData.
    pub fn store(self, snapshot: &mut Snapshot) -> Option<NewEvent> {
        if self.repeats(snapshot) {
            return None;
        }
        let cluster = &mut snapshot.cluster;
        let is_new = !self.are_addresses_of(cluster);
        if is_new {
            cluster.api_vips = vec![ApiVip {
                cluster_id: Some(cluster.id),
                ip: self.api_vip.to_string(),
                verification: None,
            }];
            cluster.ingress_vips = vec![IngressVip {
                cluster_id: Some(cluster.id),
                ip: self.ingress_vip.to_string(),
                verification: None,
            }];
        }
        snapshot.vip_leases.api = self.api_lease;
        snapshot.vip_leases.ingress = self.ingress_lease;
        is_new.then(|| {
            let (api, ingress) = (self.api_vip, self.ingress_vip);
            let message = format!("leased {api} for the API and {ingress} for ingress");
            let severity = EventSeverity::Info;
            about_cluster(snapshot, "api_ingress_vip_updated", severity, &message)
                .prop("api_vip", api)
                .prop("ingress_vip", ingress)
        })
    }

    /// Whether storing it changes nothing, as with most replies.
    pub fn repeats(&self, snapshot: &Snapshot) -> bool {
        let can_change = matches!(
            snapshot.cluster.status,
            ClusterStatus::PendingForInput | ClusterStatus::Insufficient | ClusterStatus::Ready
        );
        !can_change
            || (self.are_addresses_of(&snapshot.cluster)
                && self.api_lease == snapshot.vip_leases.api
                && self.ingress_lease == snapshot.vip_leases.ingress)
    }

    fn are_addresses_of(&self, cluster: &Cluster) -> bool {
        let api = cluster.api_vips.first().map(|vip| vip.ip.as_str());
        let ingress = cluster.ingress_vips.first().map(|vip| vip.ip.as_str());
        api == Some(&self.api_vip.to_string()) && ingress == Some(&self.ingress_vip.to_string())
    }
}

fn refuse(field: &str, problem: &str) -> Error {
    Error::invalid("output", format!("{field} {problem}"))
}

fn address_of(field: &str, text: &str, network: &str) -> Result<Ipv4Addr, Error> {
    let address: Result<Ipv4Addr, _> = text.parse();
    let address = address.map_err(|_| refuse(field, "is not an IPv4 address"))?;
    let parsed: Option<Ipv4Net> = network.parse().ok();
    if parsed.is_some_and(|network| network.contains(&address)) {
        return Ok(address);
    }
    let problem = format!("{address} is not in machine network {network:?}");
    Err(refuse(field, &problem))
}

fn lease_of(field: &str, text: &str) -> Result<String, Error> {
    bounds::check_text(field, text, bounds::LEASE_BYTES)?;
    permanent(text).ok_or_else(|| refuse(field, "is not one lease of dhclient"))
}

/// The lease with times that never end: the nodes present it long after its end and renew it themselves. None for a
/// text that is not one lease in the format of dhclient.leases(5); an empty one is accepted.
/// Source: assisted-service, internal/network/lease_utils.go, VerifyLease, FormatLease.
fn permanent(lease: &str) -> Option<String> {
    if lease.is_empty() {
        return Some(String::new());
    }
    let body = lease.trim_start().strip_prefix("lease")?;
    let mut rest = body.trim_start().strip_prefix('{')?;
    let mut done = lease[..lease.len() - rest.len()].to_owned();
    loop {
        let next = rest.trim_start();
        let blanks = &rest[..rest.len() - next.len()];
        if blanks.is_empty() {
            return None;
        }
        done.push_str(blanks);
        if let Some(end) = next.strip_prefix('}') {
            done.push_str(next);
            return end.trim().is_empty().then_some(done);
        }
        let (statement, after) = next.split_once(';')?;
        let (name, value) = statement.split_once(' ')?;
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
        if name.is_empty() || !name.bytes().all(is_name) || value.contains('}') {
            return None;
        }
        let is_time = matches!(name, "renew" | "rebind" | "expire");
        done.push_str(name);
        done.push(' ');
        done.push_str(if is_time { "never" } else { value });
        done.push(';');
        rest = after;
    }
}

/// Follows the machine network and the clock. A new network needs new leases.
/// Source: assisted-service, internal/bminventory/inventory.go, updateDhcpNetworkParams; internal/cluster/cluster.go,
/// shouldTriggerLeaseTimeoutEvent.
pub(crate) fn refresh(snapshot: &mut Snapshot, now: Timestamp) -> Option<NewEvent> {
    let cluster = &mut snapshot.cluster;
    if !networking::uses_dhcp(cluster) {
        snapshot.vip_leases = VipLeases::default();
        return None;
    }
    let network = cluster.machine_networks.first();
    let network = network.map_or("", |network| network.cidr.as_str());
    if snapshot.vip_leases.network != network {
        if !snapshot.vip_leases.network.is_empty() {
            cluster.api_vips.clear();
            cluster.ingress_vips.clear();
        }
        snapshot.vip_leases = VipLeases {
            network: network.to_owned(),
            requested_at: now.into(),
            ..VipLeases::default()
        };
    }
    let is_due = is_timeout_due(snapshot, snapshot.observed, now);
    let leases = &mut snapshot.vip_leases;
    leases.timed_out = is_due || (leases.timed_out && are_awaited(&snapshot.cluster));
    is_due.then(|| {
        let minutes = LEASE_TIMEOUT.num_minutes();
        let network = &snapshot.vip_leases.network;
        let message =
            format!("no DHCP server of {network} leased virtual addresses in {minutes} minutes");
        let severity = EventSeverity::Warning;
        about_cluster(snapshot, "api_ingress_vip_timed_out", severity, &message)
            .prop("timeout_interval", minutes)
    })
}

/// Whether the timeout has passed and no refresh has noticed it yet. Time alone starts no refresh of a cluster that
/// waits for its user, but its hosts poll.
pub fn is_timeout_due(snapshot: &Snapshot, observed: ObservedTime, now: Timestamp) -> bool {
    let leases = &snapshot.vip_leases;
    let timeout = Timeout {
        since: leases.requested_at,
        limit: LEASE_TIMEOUT,
    };
    let runs = !leases.timed_out && !leases.network.is_empty();
    runs && are_awaited(&snapshot.cluster) && timeout.is_expired(now, observed)
}

fn are_awaited(cluster: &Cluster) -> bool {
    let has_ended = matches!(
        cluster.status,
        ClusterStatus::Installed
            | ClusterStatus::AddingHosts
            | ClusterStatus::Error
            | ClusterStatus::Cancelled
    );
    !has_ended
        && networking::uses_dhcp(cluster)
        && (cluster.api_vips.is_empty() || cluster.ingress_vips.is_empty())
}

#[cfg(test)]
mod tests {
    use model::network::MachineNetwork;
    use serde_json::json;

    use super::*;
    use crate::samples;

    const LEASE: &str = "lease {\n  interface \"api\";\n  fixed-address 192.168.10.5;\n  \
        option domain-name \"a b\";\n  renew 0 2020/10/25 14:48:38;\n  rebind 0 2020/10/25 15:11:32;\n  \
        expire 0 2020/10/25 15:19:02;\n}\n";

    fn snapshot() -> Snapshot {
        let mut snapshot = samples::snapshot();
        let cluster = &mut snapshot.cluster;
        cluster.status = ClusterStatus::Insufficient;
        cluster.vip_dhcp_allocation = Some(true);
        cluster.api_vips.clear();
        cluster.ingress_vips.clear();
        cluster.machine_networks = vec![network("192.168.10.0/24")];
        snapshot
    }

    fn network(cidr: &str) -> MachineNetwork {
        MachineNetwork {
            cidr: cidr.to_owned(),
            ..MachineNetwork::default()
        }
    }

    fn reply(api: &str, ingress: &str) -> DhcpAllocationResponse {
        let body = json!({ "api_vip_address": api, "ingress_vip_address": ingress, "api_vip_lease": LEASE });
        serde_json::from_value(body).unwrap()
    }

    fn store(snapshot: &mut Snapshot, api: &str, ingress: &str) -> Result<Vec<String>, Error> {
        let leased = LeasedVips::check(&snapshot.cluster, &reply(api, ingress))?;
        let event = leased.store(snapshot);
        Ok(event.into_iter().map(|event| event.message).collect())
    }

    #[test]
    fn leases_never_end() {
        let permanent_lease = permanent(LEASE).unwrap();
        for line in [
            "  renew never;\n",
            "  rebind never;\n",
            "  expire never;\n}\n",
        ] {
            assert!(permanent_lease.contains(line), "{permanent_lease}");
        }
        assert!(
            permanent_lease
                .starts_with("lease {\n  interface \"api\";\n  fixed-address 192.168.10.5;\n")
        );
        assert_eq!(
            permanent(&permanent_lease).as_deref(),
            Some(permanent_lease.as_str())
        );
        assert_eq!(permanent("").as_deref(), Some(""));
    }

    #[test]
    fn other_texts_are_no_leases() {
        for text in [
            "leases",
            "lease {}",
            "lease { x 1; } rest",
            "lease { x; }",
            "lease { x 1;\n",
            "lease { x 1;y 2; }",
            "lease { X 1; }",
            "lease { x }; }",
            &[LEASE, LEASE].concat(),
        ] {
            assert_eq!(permanent(text), None, "{text}");
        }
    }

    // limit: DHCP lease
    #[test]
    fn leases_are_bounded() {
        let of = |length: usize| {
            let frame = "lease { x ; }".len();
            format!("lease {{ x {}; }}", "y".repeat(length - frame))
        };
        assert!(lease_of("api_vip_lease", &of(bounds::LEASE_BYTES)).is_ok());
        let error = lease_of("api_vip_lease", &of(bounds::LEASE_BYTES + 1)).unwrap_err();
        assert!(error.to_string().contains("api_vip_lease"), "{error}");
    }

    #[test]
    fn addresses_and_leases_are_stored_once() {
        let mut all = snapshot();
        refresh(&mut all, samples::now());
        let events = store(&mut all, "192.168.10.5", "192.168.10.6").unwrap();
        assert!(events[0].contains("192.168.10.5"), "{events:?}");
        assert_eq!(all.cluster.api_vips[0].ip, "192.168.10.5");
        assert_eq!(all.cluster.ingress_vips[0].ip, "192.168.10.6");
        assert!(all.vip_leases.api.contains("expire never;"));
        let before = all.clone();
        assert!(
            store(&mut all, "192.168.10.5", "192.168.10.6")
                .unwrap()
                .is_empty()
        );
        assert_eq!(all.cluster, before.cluster);
        assert_eq!(
            store(&mut all, "192.168.10.7", "192.168.10.6")
                .unwrap()
                .len(),
            1
        );
    }

    #[test]
    fn other_addresses_are_refused_while_installing() {
        let mut all = snapshot();
        store(&mut all, "192.168.10.5", "192.168.10.6").unwrap();
        all.cluster.status = ClusterStatus::Installing;
        assert!(
            store(&mut all, "192.168.10.5", "192.168.10.6")
                .unwrap()
                .is_empty()
        );
        let error = store(&mut all, "192.168.10.7", "192.168.10.6").unwrap_err();
        assert!(matches!(error, Error::Conflict { .. }), "{error}");
    }

    #[test]
    fn impossible_replies_are_refused() {
        for (api, ingress, text) in [
            (
                "192.168.11.5",
                "192.168.10.6",
                "api_vip_address 192.168.11.5 is not in",
            ),
            (
                "192.168.10.5",
                "fe80::1",
                "ingress_vip_address is not an IPv4",
            ),
            ("192.168.10.5", "192.168.10.5", "equals"),
        ] {
            let error = store(&mut snapshot(), api, ingress).unwrap_err();
            assert!(error.to_string().contains(text), "{error}");
        }
        let mut all = snapshot();
        all.cluster.vip_dhcp_allocation = Some(false);
        let error = store(&mut all, "192.168.10.5", "192.168.10.6").unwrap_err();
        assert!(matches!(error, Error::Conflict { .. }), "{error}");
    }

    #[test]
    fn the_timeout_is_reported_once() {
        let mut all = snapshot();
        let start = samples::now();
        assert_eq!(refresh(&mut all, start), None);
        let end = start + LEASE_TIMEOUT;
        let is_due = |all: &Snapshot, now| is_timeout_due(all, ObservedTime::default(), now);
        assert!(!is_due(&all, end));
        let later = end + TimeDelta::seconds(1);
        assert!(is_due(&all, later));
        let set = ObservedTime {
            clock_set_at: Some(start + TimeDelta::seconds(2)),
            ..ObservedTime::default()
        };
        assert!(!is_timeout_due(&all, set, later), "the clock was set");
        let event = refresh(&mut all, later).unwrap();
        assert_eq!(event.name, "api_ingress_vip_timed_out");
        assert!(all.vip_leases.timed_out && !is_due(&all, later));
        assert_eq!(refresh(&mut all, later), None);
        store(&mut all, "192.168.10.5", "192.168.10.6").unwrap();
        refresh(&mut all, later);
        assert!(!all.vip_leases.timed_out);
    }

    #[test]
    fn another_network_needs_other_leases() {
        let mut all = snapshot();
        let start = samples::now();
        refresh(&mut all, start);
        store(&mut all, "192.168.10.5", "192.168.10.6").unwrap();
        all.cluster.machine_networks = vec![network("10.0.0.0/24")];
        let later = start + TimeDelta::hours(1);
        refresh(&mut all, later);
        assert!(all.cluster.api_vips.is_empty() && all.vip_leases.api.is_empty());
        assert!(!is_timeout_due(&all, all.observed, later + LEASE_TIMEOUT));
        all.cluster.vip_dhcp_allocation = Some(false);
        refresh(&mut all, later);
        assert_eq!(all.vip_leases, VipLeases::default());
    }
}
