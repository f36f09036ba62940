//! After the installation: media are ejected, the boot order is checked, and hosts that booted the image again are mended.

use model::Error;
use model::host::HostStatus;
use model::ids::InfraEnvId;
use model::time::Timestamp;
use redfish::{BmcError, BmcRunner, BmcTarget, BootOrder, FinishJob};
use rules::HostState;

use super::BmcBoots;
use super::progress::{BmcBootReport, storable};
use super::reporter::{BmcBootReporter, StopReason};
use crate::blocking;
use crate::db::{hosts, tx};

/// Statuses of hosts whose installation has ended, or waits for the medium's removal: with them, whether the host is
/// started from its disk.
const ENDED: &[(HostStatus, bool)] = &[
    (HostStatus::Installed, false),
    (HostStatus::AddedToExistingCluster, false),
    (HostStatus::InstallingPendingUserAction, true),
];

/// A host that has booted the image, with its credentials.
pub(super) struct BootedHost {
    pub(super) target: BmcTarget,
    /// MAC addresses as its BMC shows them, in lower case.
    pub(super) macs: Vec<String>,
    /// Time of the boot.
    pub(super) since: Timestamp,
}

impl BootedHost {
    /// Whether it is to be started from its disk, once its installation has ended.
    fn ended(&self, registered: &[HostState]) -> Option<bool> {
        // An older status is that of an earlier installation: the host has yet to register again.
        let is_new = |host: &&HostState| host.record.status_updated_at >= self.since.into();
        let mut same = registered
            .iter()
            .filter(is_new)
            .filter(|host| rules::is_machine(host, &self.target.name, &self.macs));
        let status = same.next()?.record.status;
        let (_, restarts) = ENDED.iter().find(|(ended, _)| *ended == status)?;
        Some(*restarts)
    }
}

impl BmcBoots {
    /// Waits for the installation of hosts, and finishes each. Their credentials end with this future.
    pub(super) async fn eject_after_install(
        &self,
        infra_env: InfraEnvId,
        mut waiting: Vec<BootedHost>,
        runner: &BmcRunner,
        reporter: &BmcBootReporter,
    ) {
        let expiry = tokio::time::sleep(self.settings.bmc_credentials_lifetime);
        tokio::pin!(expiry);
        let receiver = reporter.clone();
        let runner = runner
            .clone()
            .with_receiver(move |name, event| receiver.eject(name, event));
        while !waiting.is_empty() {
            tokio::select! {
                biased;
                () = reporter.run.cancel.cancelled() => break,
                () = &mut expiry => {
                    reporter.run.stop(StopReason::Expired);
                    break;
                }
                () = tokio::time::sleep(self.settings.cluster_monitor_interval) => {}
            }
            let registered = match self.hosts_after_install(infra_env).await {
                Ok(registered) => registered,
                Err(error) => {
                    tracing::warn!(infra_env.id = %infra_env, error = error.chain(), "installed hosts not read, retrying");
                    continue;
                }
            };
            for restarts in [false, true] {
                let is_due = |host: &mut BootedHost| host.ended(&registered) == Some(restarts);
                let due: Vec<_> = waiting.extract_if(.., is_due).collect();
                let due = due.into_iter().map(|host| host.target).collect();
                for (name, result) in runner.run(due, FinishJob { restarts }).await {
                    report_end(reporter, &name, result);
                }
            }
        }
        for host in waiting {
            reporter.add(&host.target.name, reporter.failure("", true));
        }
    }

    /// Hosts of an infra-env whose installation has ended, or waits for a person.
    async fn hosts_after_install(&self, infra_env: InfraEnvId) -> Result<Vec<HostState>, Error> {
        let statuses: Vec<HostStatus> = ENDED.iter().map(|(status, _)| *status).collect();
        let rows = tx("list installed hosts", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            hosts::of_statuses(&mut connection, &self.db.keys().await, infra_env, &statuses).await
        })
        .await?;
        Ok(blocking::unless_short(rows.len() > 1, || {
            rows.into_iter()
                .map(|row| HostState::new(row.record))
                .collect()
        }))
    }
}

/// The end of an ejection. Failures of a BMC were reported by their events.
fn report_end(reporter: &BmcBootReporter, name: &str, result: Result<BootOrder, BmcError>) {
    match result {
        Ok(order) => reporter.add(name, BmcBootReport::Done(warning(&order))),
        Err(error @ BmcError::Internal { .. }) => {
            reporter.add(name, reporter.failure(&error.to_string(), true));
        }
        Err(_) => {}
    }
}

/// The warning of a boot order that does not start with the disk; empty without.
fn warning(order: &BootOrder) -> String {
    let first = order.before_disk().map(|entry| entry.name.as_str());
    first.map_or_else(String::new, |first| {
        let text = format!(
            "the boot order starts with {first}, not with a disk: change it in the firmware's setup"
        );
        storable(&text, "")
    })
}
