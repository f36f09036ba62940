//! `atoll node approve`.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use clap::Args;
use kubernetes::{KubernetesCluster, PendingRequest};
use replacement::{CsrApproval, CsrKind, CsrRefusal, ExpectedNode, decide_csrs};
use service::Error;
use service::runtime;

use crate::cluster_args::ClusterArgs;
use crate::terminal;

/// Interval of looking for requests.
const POLL: Duration = Duration::from_secs(5);
const DOING: &str = "approving requests";

/// Arguments of `approve`.
#[derive(Debug, Clone, Args)]
pub(crate) struct NodeApproveArgs {
    /// Name of the node
    node: String,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// An address of the node; by default those of its record, which it has once it has joined. Repeatable
    #[arg(long, value_name = "IP")]
    address: Vec<IpAddr>,
    /// Wait for its requests until the node is ready
    #[arg(long)]
    wait: bool,
    /// Decide, and approve nothing
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,
}

/// Approves the requests of one node, and no other.
///
/// Errors: the cluster cannot be read; a request could not be approved.
pub(super) fn run(arguments: &NodeApproveArgs) -> Result<(), Error> {
    runtime::block_on(approve(arguments))?
}

async fn approve(arguments: &NodeApproveArgs) -> Result<(), Error> {
    let cluster = arguments.cluster.connect().await?;
    let mut shown = BTreeSet::new();
    let mut approved_key = None;
    loop {
        let node = ExpectedNode {
            approved_key: approved_key.clone(),
            ..expected(&cluster, arguments).await?
        };
        let key = approve_pending(&cluster, &node, arguments.dry_run, &mut shown).await?;
        approved_key = approved_key.or(key);
        if !arguments.wait || is_ready(&cluster, &arguments.node).await? {
            return Ok(());
        }
        tokio::time::sleep(POLL).await;
    }
}

async fn expected(
    cluster: &KubernetesCluster,
    arguments: &NodeApproveArgs,
) -> Result<ExpectedNode, Error> {
    let mut addresses: BTreeSet<IpAddr> = arguments.address.iter().copied().collect();
    if addresses.is_empty() {
        let nodes = cluster.nodes().await.map_err(failed)?;
        let node = nodes.into_iter().find(|node| node.name == arguments.node);
        let own = node.into_iter().flat_map(|node| node.addresses);
        addresses.extend(own.filter_map(|one| one.address.parse::<IpAddr>().ok()));
    }
    Ok(ExpectedNode {
        name: arguments.node.clone(),
        addresses,
        earlier: BTreeSet::new(),
        approved_key: None,
    })
}

/// Decides about each pending request; refusals are shown once. The key of an approved client certificate: further
/// requests with another one are those of another machine.
async fn approve_pending(
    cluster: &KubernetesCluster,
    node: &ExpectedNode,
    is_dry_run: bool,
    shown: &mut BTreeSet<String>,
) -> Result<Option<String>, Error> {
    let pending = cluster.pending_requests().await.map_err(failed)?;
    let requests: Vec<_> = pending.iter().map(|one| one.request.clone()).collect();
    let decisions = decide_csrs(&requests, node);
    let mut approved_key = None;
    for one in &pending {
        let name = &one.request.name;
        match decisions.get(name) {
            Some(Ok(approval)) => {
                let line = reason(one, approval, node);
                if is_dry_run {
                    terminal::print(&format!("{name}: would be approved: {line}"));
                    continue;
                }
                cluster.approve(one, &line).await.map_err(failed)?;
                terminal::print(&format!("{name}: approved: {line}"));
                if approval.kind == CsrKind::Client {
                    approved_key = Some(approval.key_sha256.clone());
                }
            }
            // A serving request may become acceptable when the node's record has its addresses.
            Some(Err(refusal)) if shown.insert(format!("{name} {refusal}")) => {
                terminal::print(&format!("{name}: not approved: {}", why(refusal, node)));
            }
            Some(Err(_)) | None => {}
        }
    }
    Ok(approved_key)
}

fn reason(one: &PendingRequest, approval: &CsrApproval, node: &ExpectedNode) -> String {
    let kind = match approval.kind {
        CsrKind::Client => "client",
        CsrKind::Serving => "serving",
    };
    format!(
        "{kind} certificate of node {}, requested by {}, key sha256 {}",
        node.name, one.request.requestor, approval.key_sha256
    )
}

fn why(refusal: &CsrRefusal, node: &ExpectedNode) -> String {
    match refusal {
        CsrRefusal::AlternativeName { .. } if node.addresses.is_empty() => {
            format!("{refusal}: name the addresses of the node with --address")
        }
        refusal => refusal.to_string(),
    }
}

async fn is_ready(cluster: &KubernetesCluster, name: &str) -> Result<bool, Error> {
    let nodes = cluster.nodes().await.map_err(failed)?;
    let is_served = cluster.pending_requests().await.map_err(failed)?;
    let own = format!("system:node:{name}");
    let is_served = is_served.iter().all(|one| one.request.requestor != own);
    Ok(is_served && nodes.iter().any(|node| node.name == name && node.is_ready))
}

fn failed(error: model::Error) -> Error {
    Error::new(DOING, error)
}
