//! Use cases of the nodes of an installed cluster: their state, and the plan and progress of a replacement.
//!
//! The cluster is read with the kubeconfig of its installation. Nothing is changed here: `atoll node replace` runs a
//! replacement, from a place that reaches the BMCs, and publishes its progress in the cluster.

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use etcd::{EtcdCluster, EtcdError};
use kubernetes::{EtcdAccess, KubernetesCluster};
use model::Error;
use model::cluster_nodes::NodesReport;
use model::ids::ClusterId;
use model::node_replacement::{
    NodeReplacement, NodeReplacementPlan, ReplacementPlanParams, ReplacementState,
};
use net::resolve::Resolver;
use preparation::kubeconfig::read_kubeconfig;
use replacement::NodeBmcs;
use replacement::{
    NodePlace, ReplacementProgress, ReplacementRequest, ReplacementWorld, StepPatience, observe,
    open_case, plan,
};
use tokio::sync::Semaphore;

use super::bmc_boots::redfish_connector;
use super::files::{ClusterFiles, KUBECONFIG};
use crate::settings::Settings;

/// Installed clusters that are read at a time: each takes 300 MiB if its responses are made for it.
pub(crate) const READS: usize = 2;
/// Longest read of an installed cluster.
pub(crate) const READ_LIMIT: Duration = Duration::from_secs(30);
/// Longest name of a node. Source: Kubernetes, names of objects. Units: bytes.
pub(crate) const NAME_BYTES: usize = 253;
/// Lost nodes of a plan: a cluster has 7 control nodes at most.
pub(crate) const MAX_LOST: usize = 6;

/// Role of the cluster in errors.
const CLUSTER: &str = "the cluster's API";

/// Reads of installed clusters.
#[derive(Debug)]
struct InstalledReads(Semaphore);

impl Default for InstalledReads {
    fn default() -> Self {
        Self(Semaphore::new(READS))
    }
}

impl InstalledReads {
    /// Errors: Unavailable – not read in time; those of the read.
    async fn run<T>(&self, read: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let reading = async {
            let _permit = self.0.acquire().await;
            read.await
        };
        match tokio::time::timeout(READ_LIMIT, reading).await {
            Ok(read) => read,
            Err(elapsed) => Err(Error::unavailable(CLUSTER, elapsed)),
        }
    }
}

/// Nodes of installed clusters.
#[derive(Debug)]
pub(crate) struct InstalledNodes {
    files: Arc<ClusterFiles>,
    settings: Arc<Settings>,
    reads: InstalledReads,
}

impl InstalledNodes {
    /// Nodes of clusters whose kubeconfigs are among `files`.
    pub(super) fn new(files: Arc<ClusterFiles>, settings: Arc<Settings>) -> Self {
        Self {
            files,
            settings,
            reads: InstalledReads::default(),
        }
    }

    /// The nodes of an installed cluster, with their Machines and hosts.
    ///
    /// Errors: NotFound; Conflict – no kubeconfig yet, or the cluster refuses it; Unavailable – it does not answer.
    pub(crate) async fn report(&self, id: ClusterId) -> Result<NodesReport, Error> {
        self.read(id, async |cluster| cluster.report().await).await
    }

    /// The repair under way and the last replacement.
    ///
    /// Errors: as [`Self::report`].
    pub(crate) async fn replacement(&self, id: ClusterId) -> Result<NodeReplacement, Error> {
        self.read(id, async |cluster| cluster.published_replacement().await)
            .await
    }

    /// The plan of a replacement: the same that `atoll node replace --plan` shows.
    ///
    /// Errors: Invalid; Conflict – the replacement is refused; as [`Self::report`].
    pub(crate) async fn plan(
        &self,
        id: ClusterId,
        params: ReplacementPlanParams,
    ) -> Result<NodeReplacementPlan, Error> {
        let request = request(params)?;
        // Without BMCs: the machines' power stays unknown in this plan.
        let machines = NodeBmcs::new(&redfish_connector(&self.settings).await?);
        self.read(id, async |cluster| {
            let EtcdAccess {
                endpoints,
                credentials,
            } = cluster.etcd_access().await?;
            let etcd = EtcdCluster::new(endpoints, &credentials, Resolver::system());
            let etcd = etcd.map_err(unreachable)?;
            let world = ReplacementWorld {
                etcd: &etcd,
                kubernetes: cluster,
                hardware: &machines,
                now: &service::clock::now,
                patience: StepPatience::default(),
            };
            let (view, published) =
                tokio::join!(observe(&world, None), cluster.published_replacement());
            let view = view.map_err(unreachable)?;
            let case = open_case(&request, &view);
            let case = case.map_err(|refusal| Error::conflict(refusal.to_string()))?;
            let others: Vec<_> = unfinished(published?, &request.node).into_iter().collect();
            let progress = ReplacementProgress::new(request, case);
            Ok(NodeReplacementPlan::from(&plan(&progress, &view, &others)))
        })
        .await
    }

    /// Reads an installed cluster, within bounds of time and number.
    async fn read<T>(
        &self,
        id: ClusterId,
        read: impl AsyncFnOnce(&KubernetesCluster) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let cluster = self.installed_cluster(id).await?;
        // On the heap: a plan is a large future.
        let read = self.reads.run(Box::pin(read(&cluster))).await;
        read.map_err(as_dependency)
    }

    async fn installed_cluster(&self, id: ClusterId) -> Result<KubernetesCluster, Error> {
        let object = self.files.credentials(id, KUBECONFIG).await?;
        let doing = "reading the stored kubeconfig";
        let text = String::from_utf8(object.bytes().await?);
        let text = text.map_err(|error| Error::internal(doing, error))?;
        let cluster = KubernetesCluster::of_stored(read_kubeconfig(&text)?);
        cluster.map_err(|error| Error::internal(doing, error))
    }
}

/// The cluster's refusals are not refusals of this API's caller.
fn as_dependency(error: Error) -> Error {
    match error {
        Error::Unauthenticated { .. } | Error::Forbidden { .. } => Error::conflict(format!(
            "the cluster refuses the kubeconfig of its installation: use atoll with a kubeconfig of today ({error})"
        )),
        error => error,
    }
}

fn unreachable(error: EtcdError) -> Error {
    Error::unavailable("the cluster's etcd", error)
}

/// The id of an unfinished replacement of another node.
fn unfinished(published: NodeReplacement, node: &str) -> Option<String> {
    let last = published.last?;
    let is_other = last.old.name != node && last.state == ReplacementState::Unfinished;
    is_other.then_some(last.id)
}

/// Errors: Invalid – a name or address; one of name and address of the new node is missing.
fn request(params: ReplacementPlanParams) -> Result<ReplacementRequest, Error> {
    let lost = params.also_lost.iter();
    let names = [("node", &params.node)].into_iter();
    let names = names
        .chain(params.new_name.as_ref().map(|name| ("new_name", name)))
        .chain(lost.map(|name| ("also_lost", name)));
    for (field, name) in names {
        if name.is_empty() || name.len() > NAME_BYTES {
            let reason = format!("a name of a node has 1 to {NAME_BYTES} bytes");
            return Err(Error::invalid(field, reason));
        }
    }
    if params.also_lost.len() > MAX_LOST {
        let reason = format!("at most {MAX_LOST} nodes");
        return Err(Error::invalid("also_lost", reason));
    }
    let new = match (params.new_name, params.new_address) {
        (None, None) => None,
        (Some(name), Some(address)) => {
            let address: IpAddr = address
                .parse()
                .map_err(|_| Error::invalid("new_address", "is no IP address"))?;
            Some(NodePlace { name, address })
        }
        _ => {
            let reason = "name and address of a new node belong together: give both or none";
            return Err(Error::invalid("new_name", reason));
        }
    };
    Ok(ReplacementRequest {
        node: params.node,
        new,
        is_unwanted: params.unwanted,
        confirmed_off_by: None,
        also_lost: params.also_lost.into_iter().collect(),
        skips_snapshot: false,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    use model::node_replacement::{ReplacedNode, ReplacementReport};

    use super::*;

    fn params(node: &str) -> ReplacementPlanParams {
        ReplacementPlanParams {
            node: node.to_owned(),
            ..ReplacementPlanParams::default()
        }
    }

    fn refused(params: ReplacementPlanParams) -> String {
        request(params).unwrap_err().to_string()
    }

    #[test]
    fn a_plan_is_requested_within_the_limits() {
        // limit: name of a node in a plan of a replacement
        assert!(request(params(&"n".repeat(NAME_BYTES))).is_ok());
        for name in [String::new(), "n".repeat(NAME_BYTES + 1)] {
            assert!(refused(params(&name)).starts_with("node: "));
        }
        // limit: lost nodes in a plan of a replacement
        let with_lost = |count: usize| ReplacementPlanParams {
            also_lost: (0..count)
                .map(|number| format!("control-{number}"))
                .collect(),
            ..params("control-9")
        };
        assert_eq!(
            request(with_lost(MAX_LOST)).unwrap().also_lost.len(),
            MAX_LOST
        );
        assert!(refused(with_lost(MAX_LOST + 1)).starts_with("also_lost: "));
    }

    #[test]
    fn name_and_address_of_a_new_node_belong_together() {
        let new = |name: Option<&str>, address: Option<&str>| ReplacementPlanParams {
            new_name: name.map(str::to_owned),
            new_address: address.map(str::to_owned),
            ..params("control-2")
        };
        let place = request(new(Some("control-4"), Some("2001:db8::4"))).unwrap();
        assert_eq!(place.new.unwrap().address.to_string(), "2001:db8::4");
        assert!(refused(new(Some("control-4"), None)).starts_with("new_name: "));
        assert!(refused(new(None, Some("192.0.2.4"))).starts_with("new_name: "));
        assert!(refused(new(Some("control-4"), Some("host"))).starts_with("new_address: "));
    }

    #[test]
    fn an_unfinished_replacement_of_another_node_is_found() {
        let published = |state| NodeReplacement {
            run: None,
            last: Some(ReplacementReport {
                id: "r-1".to_owned(),
                old: ReplacedNode {
                    name: "control-1".to_owned(),
                    address: "192.0.2.11".to_owned(),
                },
                state,
                ..ReplacementReport::default()
            }),
        };
        let (open, ended) = (ReplacementState::Unfinished, ReplacementState::Completed);
        assert_eq!(unfinished(published(open), "control-2").unwrap(), "r-1");
        assert_eq!(unfinished(published(open), "control-1"), None);
        assert_eq!(unfinished(published(ended), "control-2"), None);
        assert_eq!(unfinished(NodeReplacement::default(), "control-2"), None);
    }

    #[test]
    fn the_callers_credentials_are_not_those_of_the_cluster() {
        let refused = Error::Unauthenticated {
            reason: "expired".to_owned(),
        };
        let shown = as_dependency(refused);
        assert!(
            matches!(&shown, Error::Conflict { reason } if reason.contains("expired")),
            "{shown}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_cluster_is_given_up() {
        // limit: read of an installed cluster
        let reads = InstalledReads::default();
        let answer = |after| async move {
            tokio::time::sleep(after).await;
            Ok(1)
        };
        let second = Duration::from_secs(1);
        let read = reads.run(answer(READ_LIMIT.saturating_sub(second))).await;
        assert_eq!(read.unwrap(), 1);
        let late = reads.run(answer(READ_LIMIT + second)).await.unwrap_err();
        assert!(matches!(late, Error::Unavailable { .. }), "{late}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_waits_for_its_turn() {
        // limit: installed clusters read at a time
        let reads = InstalledReads::default();
        let (at_once, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let read = || async {
            most.fetch_max(at_once.fetch_add(1, Relaxed) + 1, Relaxed);
            tokio::time::sleep(Duration::from_secs(1)).await;
            at_once.fetch_sub(1, Relaxed);
            Ok(())
        };
        let all = (0..=READS).map(|_| reads.run(read()));
        for read in futures_util::future::join_all(all).await {
            read.unwrap();
        }
        assert_eq!(most.into_inner(), READS);
    }
}
