//! The controller of a cluster: election, watch, and looks at many hosts.

use std::collections::HashMap;
use std::sync::Arc;

use model::Error;
use tokio::sync::mpsc::{self, Receiver};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::queue::{HostQueue, MAX_HOSTS};
use super::reconcile::{HostMemory, HostReconciler};
use super::report::HostReport;
use super::timing::ControllerTiming;
use super::verdict::HostNext;
use kubernetes::{
    CONTROLLER_LEASE, ClusterLease, KubernetesCluster, LeaseClaim, LeaseHolder, LeaseTerms,
    WatchedHost,
};
use redfish::observation_timing;
use redfish::{BMC_CONCURRENCY, BmcRunner, RedfishConnector};

/// Notices of changes that wait; the watch pauses behind them.
const NOTICES: usize = 1024;

/// A controller of the hosts of a cluster.
#[derive(Debug)]
pub struct HostController {
    reconciler: Arc<HostReconciler>,
    terms: LeaseTerms,
    holder: String,
}

/// A look that has ended.
struct EndedLook {
    report: HostReport,
    memory: HostMemory,
}

impl HostController {
    /// A controller that calls itself `holder`, as `bastion, process 4711`.
    pub fn new(cluster: KubernetesCluster, connector: &RedfishConnector, holder: &str) -> Self {
        // A dead BMC must not hold the looks at others for minutes.
        let timing = observation_timing(connector.timing());
        let connector = connector.clone().with_timing(timing);
        let reconciler = HostReconciler {
            cluster,
            runner: BmcRunner::new(connector, CancellationToken::new()),
            timing: ControllerTiming::default(),
            claims: Arc::default(),
        };
        Self {
            reconciler: Arc::new(reconciler),
            terms: LeaseTerms::default(),
            holder: holder.to_owned(),
        }
    }

    /// With other times.
    #[must_use]
    pub fn with_timing(mut self, timing: ControllerTiming, terms: LeaseTerms) -> Self {
        self.reconciler = Arc::new(HostReconciler {
            timing,
            ..HostReconciler::clone(&self.reconciler)
        });
        self.terms = terms;
        self
    }

    /// Looks at every host once. The reports are in the order of names.
    ///
    /// Errors: Conflict – another controller runs; NotFound – the cluster has no hosts; those of the cluster.
    pub async fn once(&self) -> Result<Vec<HostReport>, Error> {
        let cluster = &self.reconciler.cluster;
        let lease = ClusterLease::take(cluster, &CONTROLLER_LEASE, &self.holder, self.terms);
        let mut lease = lease.await?;
        let begun = self.refuse_others(&lease).await;
        let ended = if let Err(other) = begun {
            Err(other)
        } else {
            tokio::select! {
                biased;
                lost = lease.keep() => return Err(lost),
                reports = self.look_at_all() => reports,
            }
        };
        release(lease).await;
        ended
    }

    /// Acts until `stop`; stands by while another controller does.
    ///
    /// Errors: Conflict – a controller of another kind runs; NotFound – the cluster has no hosts; Unauthenticated and
    /// Forbidden.
    pub async fn run(&self, stop: &CancellationToken) -> Result<(), Error> {
        loop {
            let elected = stop.run_until_cancelled(self.elect());
            let Some(lease) = elected.await else {
                return Ok(());
            };
            let mut lease = lease?;
            tracing::info!(holder = self.holder, "this controller acts");
            let begun = self.refuse_others(&lease).await;
            let ended = if let Err(other) = begun {
                Err(other)
            } else {
                tokio::select! {
                    // A lease that is lost ends all work at once.
                    biased;
                    lost = lease.keep() => {
                        tracing::warn!(reason = %lost, "this controller has lost its lease, and stands by");
                        continue;
                    }
                    ended = self.act(stop) => ended,
                }
            };
            release(lease).await;
            let Err(error @ Error::Unavailable { .. }) = ended else {
                return ended;
            };
            tracing::warn!(error = %error.chain(), "the records of the cluster cannot be read, retrying");
            sleep(self.terms.poll_interval).await;
        }
    }

    /// Waits until this controller has the lease.
    async fn elect(&self) -> Result<ClusterLease, Error> {
        let cluster = &self.reconciler.cluster;
        let mut known = String::new();
        loop {
            let claim = ClusterLease::claim(cluster, &CONTROLLER_LEASE, &self.holder, self.terms);
            match claim.await {
                Ok(LeaseClaim::Granted(lease)) => return Ok(*lease),
                Ok(LeaseClaim::Refused(LeaseHolder { name, since, .. })) => {
                    if name != known && !name.is_empty() {
                        tracing::info!(
                            holder = name,
                            since,
                            "another controller acts, standing by"
                        );
                        known = name;
                    }
                }
                Err(error @ Error::Unavailable { .. }) => {
                    tracing::warn!(error = %error.chain(), "the lease of controllers cannot be read, retrying");
                }
                Err(error) => return Err(error),
            }
            sleep(self.terms.poll_interval).await;
        }
    }

    async fn refuse_others(&self, lease: &ClusterLease) -> Result<(), Error> {
        let cluster = &self.reconciler.cluster;
        cluster.refuse_host_operator().await?;
        cluster
            .refuse_other_status_writers(lease.renewed_at())
            .await
    }

    /// Watches the hosts and looks at them, until `stop` or another controller.
    async fn act(&self, stop: &CancellationToken) -> Result<(), Error> {
        let (sender, receiver) = mpsc::channel(NOTICES);
        let resync = self.reconciler.timing.resync;
        let watch = self.reconciler.cluster.watch_hosts(sender, resync);
        tokio::select! {
            () = self.dispatch(receiver, stop) => Ok(()),
            error = self.other_operator() => Err(error),
            () = watch => Ok(()),
        }
    }

    /// Waits for a controller of another kind.
    async fn other_operator(&self) -> Error {
        loop {
            sleep(self.reconciler.timing.resync).await;
            let refused = self.reconciler.cluster.refuse_host_operator().await;
            if let Err(error @ Error::Conflict { .. }) = refused {
                return error;
            }
        }
    }

    /// Looks at hosts at their times, and after changes, a bounded number at a time.
    async fn dispatch(&self, mut notices: Receiver<WatchedHost>, stop: &CancellationToken) {
        let mut queue = HostQueue::default();
        let mut memories: HashMap<String, HostMemory> = HashMap::new();
        let mut looks = JoinSet::new();
        loop {
            while looks.len() < BMC_CONCURRENCY
                && let Some(name) = queue.start(Instant::now())
            {
                let memory = memories.remove(&name).unwrap_or_default();
                looks.spawn(look(Arc::clone(&self.reconciler), name, memory));
            }
            let is_full = looks.len() >= BMC_CONCURRENCY;
            let due = queue.next_due().filter(|_| !is_full);
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(ended) = looks.join_next() => match ended {
                    Ok(ended) => settle(ended, &mut queue, &mut memories),
                    Err(error) => tracing::error!(%error, "a look at a host ended early"),
                },
                Some(host) = notices.recv() => {
                    if !queue.changed(&host.name, &host.version, Instant::now()) {
                        tracing::error!(host = host.name, "more than {MAX_HOSTS} hosts: this one is left out");
                    }
                }
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
            }
        }
        let drained = async { while looks.join_next().await.is_some() {} };
        if timeout(self.reconciler.timing.drain, drained)
            .await
            .is_err()
        {
            tracing::warn!("work in progress was stopped; the next controller continues it");
        }
    }

    async fn look_at_all(&self) -> Result<Vec<HostReport>, Error> {
        let names = self.reconciler.cluster.host_names().await?;
        let mut reports = Vec::new();
        let mut looks = JoinSet::new();
        for name in names.unwrap_or_default() {
            if looks.len() >= BMC_CONCURRENCY
                && let Some(Ok(ended)) = looks.join_next().await
            {
                let EndedLook { report, .. } = ended;
                reports.push(report);
            }
            let memory = HostMemory::default();
            looks.spawn(look(Arc::clone(&self.reconciler), name, memory));
        }
        while let Some(ended) = looks.join_next().await {
            reports.extend(ended.ok().map(|ended: EndedLook| ended.report));
        }
        reports.sort_unstable_by(|one, other| one.host.cmp(&other.host));
        Ok(reports)
    }
}

async fn look(reconciler: Arc<HostReconciler>, name: String, mut memory: HostMemory) -> EndedLook {
    let report = reconciler.reconcile(&name, &mut memory).await;
    EndedLook { report, memory }
}

fn settle(ended: EndedLook, queue: &mut HostQueue, memories: &mut HashMap<String, HostMemory>) {
    let EndedLook { report, memory } = ended;
    let HostReport { host, version, .. } = report;
    let now = Instant::now();
    let next = match report.next {
        HostNext::Forget => return queue.forget(&host, &version, now),
        HostNext::Again | HostNext::Release => Some(now),
        HostNext::After(pause) => Some(now + pause),
        HostNext::OnChange => None,
    };
    queue.finish(&host, version, next, now);
    memories.insert(host, memory);
}

async fn release(lease: ClusterLease) {
    if let Err(error) = lease.release().await {
        tracing::warn!(error = %error.chain(), "the lease of controllers ends by itself");
    }
}
