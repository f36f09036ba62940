//! A request in this process: its BMCs are served, and after the installation its media are ejected.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use model::ids::InfraEnvId;
use model::time::Timestamp;
use redfish::{
    Bmc, BmcError, BmcEvent, BmcJob, BmcProgress, BmcRunner, BmcTarget, BootJob, BootMedium,
    RedfishConnector,
};
use service::CancellationToken;
use uuid::Uuid;

use super::BmcBoots;
use super::eject::BootedHost;
use super::progress::{BmcBootReport, PendingProgress, storable};

/// A request, with its credentials.
pub(super) struct BmcBootRequest {
    pub(super) id: Uuid,
    pub(super) infra_env: InfraEnvId,
    pub(super) targets: Vec<BmcTarget>,
    pub(super) medium: BootMedium,
    /// Path of the image's address, which may hold a token.
    pub(super) image_path: String,
    /// Whether the credentials stay in memory until the hosts are installed.
    pub(super) ejects: bool,
}

/// The end of a request that does not end by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopReason {
    Cancelled,
    ServerEnded,
    SessionLost,
    /// The credentials were kept as long as they may be.
    Expired,
}

impl StopReason {
    /// Its words, for a host that has booted the image or has not.
    pub(super) const fn text(self, is_booted: bool) -> &'static str {
        match (self, is_booted) {
            (Self::Cancelled, _) => "cancelled",
            (Self::ServerEnded, false) => {
                "the server that had the credentials ended: send the request again"
            }
            (Self::ServerEnded, true) => {
                "the server that had the credentials ended: eject the medium at the BMC after the installation"
            }
            (Self::SessionLost, false) => {
                "the server that had the credentials lost its connection to the database: send the request again"
            }
            (Self::SessionLost, true) => {
                "the server that had the credentials lost its connection to the database: eject the medium at the BMC \
                 after the installation"
            }
            (Self::Expired, _) => {
                "not installed within BMC_CREDENTIALS_LIFETIME, the credentials are forgotten: eject the medium at the \
                 BMC after the installation"
            }
        }
    }
}

/// The handle of a request that is under way.
#[derive(Debug, Default)]
pub(super) struct BmcBootRun {
    pub(super) cancel: CancellationToken,
    /// Set before the cancellation.
    reason: OnceLock<StopReason>,
}

impl BmcBootRun {
    /// Stops the request. The first reason counts.
    pub(super) fn stop(&self, reason: StopReason) {
        let _ = self.reason.set(reason);
        self.cancel.cancel();
    }
}

/// Reports the events of a request's hosts.
#[derive(Clone)]
pub(super) struct BmcBootReporter {
    pub(super) run: Arc<BmcBootRun>,
    request: Uuid,
    image_path: Arc<str>,
    ejects: bool,
    progress: Arc<PendingProgress>,
}

impl BmcBootReporter {
    /// Reports an event of a boot.
    fn boot(&self, name: &str, event: BmcEvent) {
        self.add(
            name,
            match event {
                BmcEvent::Connecting => BmcBootReport::Started,
                BmcEvent::Connected(_) | BmcEvent::Warning(_) => return,
                BmcEvent::Step(step) => BmcBootReport::Step(step.title()),
                BmcEvent::Done if self.ejects => BmcBootReport::Installing(""),
                BmcEvent::Done => BmcBootReport::Done(String::new()),
                BmcEvent::Failed(text) => self.failure(&text, false),
            },
        );
    }

    /// Reports an event of an ejection; its success is reported with the boot order.
    pub(super) fn eject(&self, name: &str, event: BmcEvent) {
        self.add(
            name,
            match event {
                BmcEvent::Connecting => BmcBootReport::Installing("connect"),
                // The boot order has the warning.
                BmcEvent::Connected(_) | BmcEvent::Warning(_) | BmcEvent::Done => return,
                BmcEvent::Step(step) => BmcBootReport::Installing(step.title()),
                BmcEvent::Failed(text) => self.failure(&text, true),
            },
        );
    }

    pub(super) fn add(&self, name: &str, report: BmcBootReport) {
        let now = service::clock::now();
        self.progress.add((self.request, name), report, now);
    }

    /// A failure: for the reason of the stop, or else this one.
    pub(super) fn failure(&self, text: &str, is_booted: bool) -> BmcBootReport {
        let stopped = self.run.reason.get().map(|reason| reason.text(is_booted));
        let text = stopped.map_or_else(|| storable(text, &self.image_path), str::to_owned);
        BmcBootReport::Failed(text)
    }
}

/// A boot. Its output is the time of its end, and the MAC addresses by which the host is recognised later.
struct RecognisedBoot {
    boot: BootJob,
    reads_nics: bool,
}

impl BmcJob for RecognisedBoot {
    type Output = (Timestamp, Vec<String>);

    async fn run(&self, bmc: &mut Bmc, progress: &BmcProgress) -> Result<Self::Output, BmcError> {
        let mut macs = Vec::new();
        // Without them, the host is recognised by its name.
        if self.reads_nics
            && let Ok(inventory) = bmc.inventory().await
        {
            macs = inventory.nics.into_iter().map(|nic| nic.mac).collect();
        }
        self.boot.run(bmc, progress).await?;
        Ok((service::clock::now(), macs))
    }
}

impl BmcBoots {
    /// Serves the BMCs of a request in the background.
    pub(super) fn run(self: &Arc<Self>, connector: RedfishConnector, request: BmcBootRequest) {
        let run = Arc::new(BmcBootRun::default());
        let id = request.id;
        self.runs().insert(id, Arc::clone(&run));
        let reporter = BmcBootReporter {
            run,
            request: id,
            image_path: request.image_path.as_str().into(),
            ejects: request.ejects,
            progress: Arc::clone(&self.progress),
        };
        let boots = Arc::clone(self);
        tokio::spawn(async move {
            boots.serve(connector, request, &reporter).await;
            tracing::info!(request = %id, "boots by BMCs ended");
            boots.runs().remove(&id);
        });
    }

    async fn serve(
        &self,
        connector: RedfishConnector,
        request: BmcBootRequest,
        reporter: &BmcBootReporter,
    ) {
        let runner = BmcRunner::new(connector, reporter.run.cancel.clone())
            .with_permits(Arc::clone(&self.permits));
        let job = RecognisedBoot {
            boot: BootJob(request.medium),
            reads_nics: request.ejects,
        };
        let mut kept: HashMap<String, BmcTarget> = HashMap::new();
        if request.ejects {
            let named = request.targets.iter().cloned();
            kept.extend(named.map(|target| (target.name.clone(), target)));
        }
        let boots = reporter.clone();
        let boots = runner
            .clone()
            .with_receiver(move |name, event| boots.boot(name, event));
        let mut booted = Vec::new();
        for (name, result) in boots.run(request.targets, job).await {
            match result {
                Ok((since, macs)) => {
                    let target = kept.remove(&name);
                    booted.extend(target.map(|target| BootedHost {
                        target,
                        macs,
                        since,
                    }));
                }
                // The only failure that has no event yet: a panic.
                Err(error @ BmcError::Internal { .. }) => {
                    reporter.add(&name, reporter.failure(&error.to_string(), false));
                }
                Err(_) => {}
            }
        }
        drop(kept);
        self.eject_after_install(request.infra_env, booted, &runner, reporter)
            .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_of_a_stop_counts() {
        let run = BmcBootRun::default();
        run.stop(StopReason::Cancelled);
        run.stop(StopReason::ServerEnded);
        assert_eq!(run.reason.get(), Some(&StopReason::Cancelled));
        assert!(run.cancel.is_cancelled());
    }

    #[test]
    fn a_booted_host_is_not_to_be_booted_again() {
        use StopReason::{Cancelled, Expired, ServerEnded, SessionLost};
        for reason in [Cancelled, ServerEnded, SessionLost, Expired] {
            assert!(!reason.text(true).contains("send the request again"));
        }
    }
}
