//! `atoll node status`.

use clap::Args;
use etcd::quorum::MemberRole;
use etcd::{EtcdView, MemberHealth, ObservedMember};
use model::cluster_nodes::{CertificateReport, CsrReport, NodeReport, NodesReport};
use serde::Serialize;
use service::runtime;
use service::{Error, ResultExt as _};

use super::etcd::EtcdArgs;
use crate::catalog::table::table;
use crate::cluster_args::ClusterArgs;
use crate::output_format::FormatArgs;
use crate::terminal;

/// Certificates that end within so many days are shown. The platform renews them at 80 % of their three years.
const SOON_DAYS: i64 = 90;

/// Arguments of `status`.
#[derive(Debug, Clone, Args)]
pub(crate) struct NodeStatusArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    etcd: EtcdArgs,
    #[command(flatten)]
    format: FormatArgs,
}

/// Nodes, and members of etcd.
#[derive(Debug, Serialize)]
struct NodeStatus {
    #[serde(flatten)]
    nodes: NodesReport,
    /// None: etcd was not reached.
    etcd_members: Option<EtcdView>,
    /// Reason why etcd was not reached.
    etcd_failure: Option<String>,
}

/// Shows the state of the nodes.
///
/// Errors: the cluster cannot be read.
pub(super) fn run(arguments: &NodeStatusArgs) -> Result<(), Error> {
    let report = runtime::block_on(read(arguments))??;
    if arguments.format.is_json() {
        let json = serde_json::to_string_pretty(&report);
        terminal::print(&json.doing("writing JSON")?);
    } else {
        terminal::print(&screen(&report));
    }
    Ok(())
}

async fn read(arguments: &NodeStatusArgs) -> Result<NodeStatus, Error> {
    let cluster = arguments.cluster.connect().await?;
    let nodes = cluster.report().await;
    let nodes = nodes.doing(|| format!("reading {}", cluster.url()))?;
    // Without etcd, the state of the nodes is worth showing all the same.
    let (etcd_members, etcd_failure) = match members(arguments).await {
        Ok(members) => (Some(members), None),
        Err(error) => (None, Some(error.to_string())),
    };
    Ok(NodeStatus {
        nodes,
        etcd_members,
        etcd_failure,
    })
}

async fn members(arguments: &NodeStatusArgs) -> Result<EtcdView, Error> {
    let etcd = arguments.etcd.connect(&arguments.cluster).await?;
    let view = etcd.observe().await;
    view.doing("reading the members of etcd")
}

/// The report for people.
fn screen(status: &NodeStatus) -> String {
    let report = &status.nodes;
    let facts = [&report.url, &report.version, &report.topology];
    let facts: Vec<_> = facts.into_iter().filter(|fact| !fact.is_empty()).collect();
    let mut parts = vec![facts.into_iter().cloned().collect::<Vec<_>>().join("  ")];
    parts.push(nodes(&report.nodes));
    parts.extend(status.etcd_members.as_ref().map(member_table));
    let mut remarks = Vec::new();
    remarks.extend(status.etcd_failure.iter().cloned());
    remarks.extend(report.etcd.iter().map(|text| format!("etcd: {text}")));
    let upgrade = report.upgrade.iter();
    remarks.extend(upgrade.map(|text| format!("upgrade under way: {text}")));
    if !report.rolling_out.is_empty() {
        let kinds = report.rolling_out.join(", ");
        remarks.push(format!("static pods not on one revision: {kinds}"));
    }
    let reasons = report.nodes.iter().filter(|row| !row.reason.is_empty());
    remarks.extend(reasons.map(|row| {
        let name = row.node.as_deref().unwrap_or_default();
        format!("{name} is not ready: {}", row.reason)
    }));
    let errors = report.nodes.iter().filter(|row| !row.host_error.is_empty());
    remarks.extend(errors.map(|row| {
        let name = row.host.as_deref().unwrap_or_default();
        format!("host {name}: {}", row.host_error)
    }));
    let ending = report.certificates.iter();
    let ending = ending.filter(|one| one.days_left < SOON_DAYS);
    remarks.extend(ending.map(certificate));
    parts.extend((!remarks.is_empty()).then(|| remarks.join("\n")));
    if !report.pending_csrs.is_empty() {
        let cells = |csr: &CsrReport| {
            [&csr.name, &csr.signer, &csr.requestor, &csr.created_at].map(String::clone)
        };
        let rows: Vec<_> = report.pending_csrs.iter().map(cells).collect();
        parts.push(table(
            ["PENDING REQUEST", "SIGNER", "REQUESTOR", "CREATED"],
            &rows,
        ));
    }
    parts.join("\n\n")
}

fn certificate(one: &CertificateReport) -> String {
    let secret = &one.secret;
    match one.days_left {
        ..0 => format!("certificate {secret} has ended: {}", one.not_after),
        days => format!(
            "certificate {secret} ends in {days} days: {}",
            one.not_after
        ),
    }
}

fn member_table(view: &EtcdView) -> String {
    let leader = view.leader().map(|leader| leader.member.id);
    let row = |observed: &ObservedMember| {
        let member = &observed.member;
        let role = match member.role {
            MemberRole::Learner => "learner",
            MemberRole::Voter if Some(member.id) == leader => "leader",
            MemberRole::Voter => "voter",
        };
        let health = match &observed.health {
            MemberHealth::Healthy => "healthy".to_owned(),
            MemberHealth::NotStarted => "not started".to_owned(),
            MemberHealth::Unhealthy { reason } => format!("unhealthy: {reason}"),
        };
        [
            member.id.to_string(),
            member.name.clone(),
            role.to_owned(),
            member.peer_host().unwrap_or_default(),
            health,
        ]
    };
    let rows: Vec<_> = view.members.iter().map(row).collect();
    let mut text = table(["MEMBER", "NAME", "ROLE", "ADDRESS", "HEALTH"], &rows);
    let count = view.voter_count();
    if count.spare() == 0 {
        text.push_str("\n\nNo voter of etcd can be spared: do not drain or reboot a control node.");
    }
    text
}

fn nodes(rows: &[NodeReport]) -> String {
    let heads = [
        "NODE",
        "STATE",
        "ROLE",
        "ADDRESS",
        "MACHINE",
        "PHASE",
        "HOST",
        "HOST STATE",
        "POWER",
    ];
    let rows: Vec<_> = rows.iter().map(row).collect();
    table(heads, &rows)
}

fn row(row: &NodeReport) -> [String; 9] {
    let named = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let filled = |text: &str| if text.is_empty() { "-" } else { text }.to_owned();
    let state = match (&row.node, row.is_ready, row.is_cordoned) {
        (None, ..) => "-",
        (_, true, false) => "ready",
        (_, true, true) => "ready, cordoned",
        (_, false, false) => "not ready",
        (_, false, true) => "not ready, cordoned",
    };
    let role = if row.is_control_plane {
        "control plane"
    } else {
        "worker"
    };
    let power = match row.is_powered_on {
        None => "-",
        Some(true) => "on",
        Some(false) => "off",
    };
    [
        named(&row.node),
        state.to_owned(),
        role.to_owned(),
        filled(&row.address),
        named(&row.machine),
        filled(&row.machine_phase),
        named(&row.host),
        filled(&row.host_state),
        power.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_screen_names_everything_that_needs_a_decision() {
        let node = |name: &str, is_ready: bool| NodeReport {
            node: Some(name.to_owned()),
            is_ready,
            reason: if is_ready {
                ""
            } else {
                "Kubelet stopped posting node status."
            }
            .to_owned(),
            is_control_plane: true,
            address: "192.0.2.10".to_owned(),
            ..NodeReport::default()
        };
        let report = NodesReport {
            url: "https://api.demo.example.com:6443/".to_owned(),
            version: "4.18.30".to_owned(),
            topology: "HighlyAvailable".to_owned(),
            upgrade: None,
            nodes: vec![node("master-0", true), node("master-1", false)],
            etcd: Some("2 of 3 members are available, master-1 is unhealthy".to_owned()),
            rolling_out: vec!["KubeAPIServer".to_owned()],
            pending_csrs: vec![CsrReport {
                name: "csr-1".to_owned(),
                signer: "kubernetes.io/kubelet-serving".to_owned(),
                requestor: "system:node:master-1".to_owned(),
                created_at: "2026-01-02T03:04:05Z".to_owned(),
            }],
            certificates: [-1, 89, 90]
                .map(|days_left| CertificateReport {
                    secret: format!("etcd-peer-{days_left}"),
                    not_after: model::time::Timestamp::UNIX_EPOCH,
                    days_left,
                })
                .to_vec(),
        };
        let expected = "\
https://api.demo.example.com:6443/  4.18.30  HighlyAvailable

NODE      STATE      ROLE           ADDRESS     MACHINE  PHASE  HOST  HOST STATE  POWER
master-0  ready      control plane  192.0.2.10  -        -      -     -           -
master-1  not ready  control plane  192.0.2.10  -        -      -     -           -

reading the members of etcd: no endpoint answers
etcd: 2 of 3 members are available, master-1 is unhealthy
static pods not on one revision: KubeAPIServer
master-1 is not ready: Kubelet stopped posting node status.
certificate etcd-peer--1 has ended: 1970-01-01 00:00:00 UTC
certificate etcd-peer-89 ends in 89 days: 1970-01-01 00:00:00 UTC

PENDING REQUEST  SIGNER                         REQUESTOR             CREATED
csr-1            kubernetes.io/kubelet-serving  system:node:master-1  2026-01-02T03:04:05Z";
        let status = NodeStatus {
            nodes: report,
            etcd_members: None,
            etcd_failure: Some("reading the members of etcd: no endpoint answers".to_owned()),
        };
        assert_eq!(screen(&status), expected);
    }
}
