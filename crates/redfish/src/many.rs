//! One job on many BMCs: a bounded number at a time, each with its own result.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::access::BmcAccess;
use super::bmc::Bmc;
use super::boot_order::BootOrder;
use super::boot_step::BootStep;
use super::connector::RedfishConnector;
use super::error::BmcError;
use super::inventory::BmcInventory;
use super::power::{FencedHost, PowerAction, PowerState};
use super::procedure::{BootMedium, boot_from, boot_from_disk, finish_installation};

/// BMCs at a time: all of them load their images from the same server.
pub const BMC_CONCURRENCY: usize = 32;

/// A BMC of a list.
#[derive(Debug, Clone)]
pub struct BmcTarget {
    /// Name of the host, in reports.
    pub name: String,
    /// Access to its BMC.
    pub access: BmcAccess,
}

/// An event of one BMC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BmcEvent {
    /// Its turn: the login begins.
    Connecting,
    /// Logged in; the family of the BMC.
    Connected(&'static str),
    /// A step of a procedure begins.
    Step(BootStep),
    /// A finding that fails nothing, and its remedy.
    Warning(String),
    /// The job has succeeded.
    Done,
    /// The job has failed; the reason.
    Failed(String),
}

/// Receives events, with the name of the host.
type EventReceiver = Arc<dyn Fn(&str, BmcEvent) + Send + Sync>;

/// Reports the events of one BMC.
#[derive(Clone)]
pub struct BmcProgress {
    name: String,
    receiver: EventReceiver,
}

impl fmt::Debug for BmcProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BmcProgress")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl BmcProgress {
    /// Reports an event.
    pub fn report(&self, event: BmcEvent) {
        (self.receiver)(&self.name, event);
    }

    fn step(&self, step: BootStep) {
        self.report(BmcEvent::Step(step));
    }
}

/// A job on one BMC.
pub trait BmcJob: Send + Sync + 'static {
    /// Its result.
    type Output: Send + 'static;

    /// Does it.
    fn run(
        &self,
        bmc: &mut Bmc,
        progress: &BmcProgress,
    ) -> impl Future<Output = Result<Self::Output, BmcError>> + Send;
}

/// Reads the inventory.
#[derive(Debug, Clone, Copy)]
pub struct InventoryJob;

impl BmcJob for InventoryJob {
    type Output = BmcInventory;

    async fn run(&self, bmc: &mut Bmc, _: &BmcProgress) -> Result<BmcInventory, BmcError> {
        bmc.inventory().await
    }
}

/// Boots from a medium.
#[derive(Debug, Clone)]
pub struct BootJob(pub BootMedium);

impl BmcJob for BootJob {
    type Output = ();

    async fn run(&self, bmc: &mut Bmc, progress: &BmcProgress) -> Result<(), BmcError> {
        boot_from(bmc, &self.0, |step| progress.step(step)).await
    }
}

/// Leaves hosts to their disks; with `restarts`, starts them from there.
#[derive(Debug, Clone, Copy)]
pub struct FinishJob {
    /// Whether they are started from their disks.
    pub restarts: bool,
}

impl BmcJob for FinishJob {
    type Output = BootOrder;

    async fn run(&self, bmc: &mut Bmc, progress: &BmcProgress) -> Result<BootOrder, BmcError> {
        let order = if self.restarts {
            boot_from_disk(bmc, |step| progress.step(step)).await?
        } else {
            finish_installation(bmc, |step| progress.step(step)).await?
        };
        if let Some(entry) = order.before_disk() {
            let warning = format!(
                "its boot order has {} before the disk: put the disk first, or a later start boots from there",
                entry.name
            );
            progress.report(BmcEvent::Warning(warning));
        }
        Ok(order)
    }
}

/// Reads the power.
#[derive(Debug, Clone, Copy)]
pub struct PowerStateJob;

impl BmcJob for PowerStateJob {
    type Output = PowerState;

    async fn run(&self, bmc: &mut Bmc, _: &BmcProgress) -> Result<PowerState, BmcError> {
        bmc.power_state().await
    }
}

/// Changes the power.
#[derive(Debug, Clone, Copy)]
pub struct PowerJob(pub PowerAction);

impl BmcJob for PowerJob {
    type Output = PowerState;

    async fn run(&self, bmc: &mut Bmc, _: &BmcProgress) -> Result<PowerState, BmcError> {
        bmc.power(self.0).await
    }
}

/// Powers off, seen twice.
#[derive(Debug, Clone, Copy)]
pub struct FenceJob;

impl BmcJob for FenceJob {
    type Output = FencedHost;

    async fn run(&self, bmc: &mut Bmc, _: &BmcProgress) -> Result<FencedHost, BmcError> {
        bmc.fence().await
    }
}

/// Runs jobs on many BMCs. Runs share the number of BMCs at a time.
#[derive(Clone)]
pub struct BmcRunner {
    connector: RedfishConnector,
    permits: Arc<Semaphore>,
    receiver: EventReceiver,
    cancel: CancellationToken,
}

impl fmt::Debug for BmcRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BmcRunner")
            .field("permits", &self.permits.available_permits())
            .finish_non_exhaustive()
    }
}

impl BmcRunner {
    /// A runner for at most [`BMC_CONCURRENCY`] BMCs at a time, until `cancel`.
    pub fn new(connector: RedfishConnector, cancel: CancellationToken) -> Self {
        Self {
            connector,
            permits: Arc::new(Semaphore::new(BMC_CONCURRENCY)),
            receiver: Arc::new(|_, _| {}),
            cancel,
        }
    }

    /// With another number of BMCs at a time, at least one.
    #[must_use]
    pub fn with_concurrency(self, concurrency: usize) -> Self {
        self.with_permits(Arc::new(Semaphore::new(concurrency.max(1))))
    }

    /// With permits, one for each BMC at a time, that other runners share.
    #[must_use]
    pub fn with_permits(mut self, permits: Arc<Semaphore>) -> Self {
        self.permits = permits;
        self
    }

    /// With a receiver of events: the name of the host, and the event.
    #[must_use]
    pub fn with_receiver(
        mut self,
        receiver: impl Fn(&str, BmcEvent) + Send + Sync + 'static,
    ) -> Self {
        self.receiver = Arc::new(receiver);
        self
    }

    /// Runs a job on each BMC; a failure concerns its own BMC alone. The results are in the order of `targets`.
    pub async fn run<J: BmcJob>(
        &self,
        targets: Vec<BmcTarget>,
        job: J,
    ) -> Vec<(String, Result<J::Output, BmcError>)> {
        let job = Arc::new(job);
        let mut first_of: BTreeMap<String, String> = BTreeMap::new();
        let mut names = Vec::new();
        let mut results = Vec::new();
        let mut running = JoinSet::new();
        let mut positions = BTreeMap::new();
        for (at, target) in targets.into_iter().enumerate() {
            let endpoint = target.access.endpoint.to_string();
            let endpoint = endpoint.trim_end_matches('/').to_owned();
            // Two jobs would undo each other's steps.
            let first = first_of.insert(endpoint.clone(), target.name.clone());
            let duplicate = first.map(|first| {
                first_of.insert(endpoint, first.clone());
                Err(BmcError::Duplicate { first })
            });
            let is_duplicate = duplicate.is_some();
            names.push(target.name.clone());
            results.push(duplicate);
            if !is_duplicate {
                let (runner, job) = (self.clone(), Arc::clone(&job));
                let task = running.spawn(async move { runner.one(&target, &*job).await });
                positions.insert(task.id(), at);
            }
        }
        while let Some(ended) = running.join_next_with_id().await {
            let (id, result) = match ended {
                Ok((id, result)) => (id, result),
                Err(error) => {
                    let failure = BmcError::Internal {
                        doing: "the job",
                        reason: error.to_string(),
                    };
                    (error.id(), Err(failure))
                }
            };
            if let Some(at) = positions.get(&id) {
                results[*at] = Some(result);
            }
        }
        let results = results.into_iter();
        let results = results.map(|result| result.unwrap_or(Err(BmcError::Cancelled)));
        names.into_iter().zip(results).collect()
    }

    async fn one<J: BmcJob>(&self, target: &BmcTarget, job: &J) -> Result<J::Output, BmcError> {
        let progress = BmcProgress {
            name: target.name.clone(),
            receiver: Arc::clone(&self.receiver),
        };
        let work = async {
            // The semaphore is never closed.
            let _permit = self
                .permits
                .acquire()
                .await
                .map_err(|_| BmcError::Cancelled)?;
            progress.report(BmcEvent::Connecting);
            let mut bmc = self.connector.connect(&target.access).await?;
            progress.report(BmcEvent::Connected(bmc.quirks().name));
            let done = job.run(&mut bmc, &progress).await;
            bmc.close().await;
            done
        };
        // A session that is dropped by the cancellation is ended by its own task.
        let result = tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(BmcError::Cancelled),
            result = work => result,
        };
        progress.report(match &result {
            Ok(_) => BmcEvent::Done,
            Err(error) => BmcEvent::Failed(error.to_string()),
        });
        result
    }
}
