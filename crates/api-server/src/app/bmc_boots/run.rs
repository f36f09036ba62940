//! A request in this process: its BMCs are served, and after the installation its media are ejected.

use std::collections::HashMap;
use std::sync::Arc;

use model::ids::InfraEnvId;
use model::time::Timestamp;
use redfish::{
    Bmc, BmcError, BmcJob, BmcProgress, BmcRunner, BmcTarget, BootJob, BootMedium, RedfishConnector,
};
use uuid::Uuid;

use super::BmcBoots;
use super::eject::BootedHost;
use super::reporter::{BmcBootReporter, BmcBootRun};

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
