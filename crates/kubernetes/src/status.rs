//! The state of the nodes on one screen: each node with its Machine and host, and requests that wait for a decision.

use std::collections::BTreeSet;
use std::time::SystemTime;

use model::Error;
use model::cluster_nodes::{CertificateReport, CsrReport, NodeReport, NodesReport};

use super::certificates::ListedCertificate;
use super::connect::KubernetesCluster;
use super::listed::{
    ListedCsr, ListedHost, ListedMachine, ListedNode, NodeAddress, OperatorView, PlatformView,
};

/// Role of Machines of the control plane.
const CONTROL_PLANE: &str = "master";
/// Condition of the etcd operator whose message names failed members.
const MEMBERS_AVAILABLE: &str = "EtcdMembersAvailable";

/// Records that a report is made of.
#[derive(Debug, Clone, Default)]
pub(super) struct NodesInput {
    pub(super) nodes: Vec<ListedNode>,
    pub(super) machines: Vec<ListedMachine>,
    pub(super) hosts: Vec<ListedHost>,
    pub(super) operators: Vec<OperatorView>,
    pub(super) platform: PlatformView,
    pub(super) csrs: Vec<ListedCsr>,
    pub(super) certificates: Vec<ListedCertificate>,
}

impl KubernetesCluster {
    /// The state of the nodes at this moment.
    ///
    /// Errors: as [`Self::list`].
    pub async fn report(&self) -> Result<NodesReport, Error> {
        let input = NodesInput {
            nodes: self.nodes().await?,
            machines: self.machines().await?.unwrap_or_default(),
            hosts: self.hosts().await?.unwrap_or_default(),
            operators: self.static_pod_operators().await?,
            platform: self.platform().await?,
            csrs: self.csrs().await?,
            certificates: self.certificates().await?,
        };
        Ok(NodesReport {
            url: self.url().to_owned(),
            ..report(input, SystemTime::now())
        })
    }
}

/// The report of records, at `now`.
fn report(input: NodesInput, now: SystemTime) -> NodesReport {
    let etcd = input.operators.iter().find(|one| one.kind == "Etcd");
    let etcd = etcd.and_then(|one| one.conditions.get(MEMBERS_AVAILABLE));
    let rolling_out = input.operators.iter();
    let pending = input.csrs.into_iter().filter(|csr| csr.is_pending);
    let mut certificates: Vec<_> = input.certificates.into_iter().collect();
    certificates
        .sort_by(|one, other| (one.not_after, &one.secret).cmp(&(other.not_after, &other.secret)));
    NodesReport {
        url: String::new(),
        version: input.platform.version,
        topology: input.platform.control_plane_topology,
        upgrade: input.platform.upgrade,
        etcd: etcd.map(|(_, message)| message.clone()),
        rolling_out: rolling_out
            .filter(|one| !one.is_on_one_revision())
            .map(|one| one.kind.to_owned())
            .collect(),
        nodes: joined(&input.nodes, &input.machines, &input.hosts),
        pending_csrs: pending
            .map(|csr| CsrReport {
                name: csr.name,
                signer: csr.signer,
                requestor: csr.requestor,
                created_at: csr.created_at,
            })
            .collect(),
        certificates: certificates
            .into_iter()
            .map(|one| CertificateReport {
                days_left: days(now, one.not_after),
                not_after: one.not_after.into(),
                secret: one.secret,
            })
            .collect(),
    }
}

/// Each node with its Machine and host, then Machines without nodes, then hosts without Machines.
fn joined(
    nodes: &[ListedNode],
    machines: &[ListedMachine],
    hosts: &[ListedHost],
) -> Vec<NodeReport> {
    let mut rows: Vec<NodeReport> = nodes.iter().map(of_node).collect();
    for machine in machines {
        let at = rows.iter().position(|row| belongs(machine, row));
        let at = at.unwrap_or_else(|| {
            rows.push(NodeReport::default());
            rows.len() - 1
        });
        let row = &mut rows[at];
        row.machine = Some(machine.name.clone());
        row.machine_phase = phase(machine);
        row.is_control_plane |= machine.role == CONTROL_PLANE;
        if row.address.is_empty() {
            row.address = internal(&machine.addresses);
        }
    }
    let of_machines: BTreeSet<_> = machines
        .iter()
        .filter_map(|machine| Some((host_name(machine)?, machine.name.as_str())))
        .collect();
    for host in hosts {
        let by_annotation = of_machines.iter().find(|(name, _)| *name == host.name);
        let machine = by_annotation.map(|(_, machine)| *machine);
        let machine = machine.or(host.consumer.as_deref());
        let at = machine.and_then(|name| {
            rows.iter()
                .position(|row| row.machine.as_deref() == Some(name))
        });
        let at = at.unwrap_or_else(|| {
            rows.push(NodeReport::default());
            rows.len() - 1
        });
        let row = &mut rows[at];
        row.host = Some(host.name.clone());
        row.host_state.clone_from(&host.state);
        row.is_powered_on = host.is_powered_on;
        row.host_error.clone_from(&host.error);
    }
    rows.sort_by(|one, other| order(one).cmp(&order(other)));
    rows
}

fn order(row: &NodeReport) -> (bool, bool, Option<&str>, Option<&str>, Option<&str>) {
    (
        !row.is_control_plane,
        row.node.is_none(),
        row.node.as_deref(),
        row.machine.as_deref(),
        row.host.as_deref(),
    )
}

fn of_node(node: &ListedNode) -> NodeReport {
    NodeReport {
        node: Some(node.name.clone()),
        is_ready: node.is_ready,
        reason: node.reason.clone(),
        is_cordoned: node.is_cordoned,
        is_control_plane: node.is_control_plane,
        address: internal(&node.addresses),
        ..NodeReport::default()
    }
}

/// By the reference, or else by the address: a Machine of a failed installation has no reference.
fn belongs(machine: &ListedMachine, row: &NodeReport) -> bool {
    if machine.node.is_some() {
        return row.node == machine.node;
    }
    let address = internal(&machine.addresses);
    row.node.is_some() && !address.is_empty() && row.address == address
}

fn phase(machine: &ListedMachine) -> String {
    let phase = if machine.is_deleting {
        "Deleting"
    } else {
        machine.phase.as_str()
    };
    match machine.pre_drain_hooks.as_slice() {
        hooks @ [_, ..] if machine.is_deleting => format!("{phase}, held by {}", hooks.join(", ")),
        _ => phase.to_owned(),
    }
}

/// The name of a Machine's host without its namespace.
fn host_name(machine: &ListedMachine) -> Option<&str> {
    let host = machine.host.as_deref()?;
    Some(host.rsplit_once('/').map_or(host, |(_, name)| name))
}

fn internal(addresses: &[NodeAddress]) -> String {
    let found = addresses.iter().find(|one| one.kind == "InternalIP");
    found.map(|one| one.address.clone()).unwrap_or_default()
}

fn days(now: SystemTime, then: SystemTime) -> i64 {
    const DAY: u64 = 24 * 60 * 60;
    let whole = |seconds: u64| i64::try_from(seconds / DAY).unwrap_or(i64::MAX);
    match then.duration_since(now) {
        Ok(left) => whole(left.as_secs()),
        Err(past) => -1 - whole(past.duration().as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn named(name: &str, address: &str) -> ListedNode {
        ListedNode {
            name: name.to_owned(),
            is_ready: true,
            is_control_plane: name.starts_with("master"),
            addresses: addresses(address),
            ..ListedNode::default()
        }
    }

    fn addresses(address: &str) -> Vec<NodeAddress> {
        vec![NodeAddress {
            kind: "InternalIP".to_owned(),
            address: address.to_owned(),
        }]
    }

    fn machine(name: &str, node: Option<&str>) -> ListedMachine {
        ListedMachine {
            name: name.to_owned(),
            phase: "Running".to_owned(),
            role: CONTROL_PLANE.to_owned(),
            node: node.map(str::to_owned),
            host: Some(format!("openshift-machine-api/{name}-host")),
            ..ListedMachine::default()
        }
    }

    fn host(name: &str, consumer: Option<&str>) -> ListedHost {
        ListedHost {
            name: name.to_owned(),
            state: "externally provisioned".to_owned(),
            consumer: consumer.map(str::to_owned),
            ..ListedHost::default()
        }
    }

    fn cells(rows: &[NodeReport]) -> Vec<[&str; 3]> {
        let text = |cell: &Option<String>| -> &'static str {
            cell.clone().map_or("-", |text| text.leak())
        };
        let cells = |row: &NodeReport| [text(&row.node), text(&row.machine), text(&row.host)];
        rows.iter().map(cells).collect()
    }

    #[test]
    fn nodes_are_joined_with_machines_and_hosts() {
        let mut by_address = machine("m0", None);
        by_address.addresses = addresses("192.0.2.10");
        let rows = joined(
            &[
                named("worker-0", "192.0.2.20"),
                named("master-0", "192.0.2.10"),
            ],
            &[by_address, machine("m1", Some("master-1"))],
            &[
                host("m0-host", None),
                host("other", Some("m1")),
                host("spare", None),
            ],
        );
        let expected = [
            ["master-0", "m0", "m0-host"],
            ["-", "m1", "other"],
            ["worker-0", "-", "-"],
            ["-", "-", "spare"],
        ];
        assert_eq!(cells(&rows), expected);
    }

    #[test]
    fn a_machine_without_address_is_of_no_node() {
        let rows = joined(&[named("master-0", "")], &[machine("m0", None)], &[]);
        assert_eq!(rows.len(), 2);
    }

    #[test]
    fn a_held_deletion_names_its_hooks() {
        let mut held = machine("m0", None);
        held.is_deleting = true;
        held.pre_drain_hooks = vec!["EtcdQuorumOperator".to_owned()];
        assert_eq!(phase(&held), "Deleting, held by EtcdQuorumOperator");
        held.is_deleting = false;
        assert_eq!(phase(&held), "Running");
    }

    #[test]
    fn the_certificate_that_ends_first_is_first() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(100 * 24);
        let ends = |secret: &str, day: u64| ListedCertificate {
            secret: secret.to_owned(),
            not_after: SystemTime::UNIX_EPOCH + Duration::from_mins(day * 24 * 60 + 1),
        };
        let input = NodesInput {
            certificates: vec![ends("later", 130), ends("ended", 99), ends("today", 100)],
            csrs: vec![
                ListedCsr {
                    name: "decided".to_owned(),
                    ..ListedCsr::default()
                },
                ListedCsr {
                    name: "pending".to_owned(),
                    is_pending: true,
                    ..ListedCsr::default()
                },
            ],
            ..NodesInput::default()
        };
        let found = report(input, now);
        let days: Vec<_> = found
            .certificates
            .iter()
            .map(|one| (one.secret.as_str(), one.days_left))
            .collect();
        assert_eq!(days, [("ended", -1), ("today", 0), ("later", 30)]);
        assert_eq!(found.pending_csrs.len(), 1);
        assert_eq!(found.pending_csrs[0].name, "pending");
    }
}
