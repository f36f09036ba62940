//! The reconciliation of one host: its record and its BMC are read, and the verdict is carried out.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use model::Error;
use serde_json::json;

use super::access::{NoAccess, host_access};
use super::action::BmcAction;
use super::bmc_job::HostBmcJob;
use super::claims::BmcClaims;
use super::intake::{HostIntake, LeftAlone};
use super::report::{HostRecordChange, HostReport};
use super::status_document::{document, surplus};
use super::timing::ControllerTiming;
use super::verdict::{BmcOutcome, HostNext, HostObservation, HostVerdict, verdict};
use host_records::BmcDetails;
use host_records::host_state::CredentialsReach;
use kubernetes::{HostRecord, HostWrite, KubernetesCluster};
use redfish::{BmcAccess, BmcError, BmcRunner, BmcTarget};

/// Steps of one reconciliation: more than a host has states.
const MAX_STEPS: usize = 20;
/// Pause after a reconciliation without an end.
const UNENDED: Duration = Duration::from_secs(5);

/// Reconciles hosts.
#[derive(Debug, Clone)]
pub(super) struct HostReconciler {
    pub(super) cluster: KubernetesCluster,
    pub(super) runner: BmcRunner,
    pub(super) timing: ControllerTiming,
    pub(super) claims: Arc<BmcClaims>,
}

/// Findings about a host between its reconciliations, of this process alone.
#[derive(Debug, Default)]
pub(super) struct HostMemory {
    refusal: Option<LoginRefusal>,
    /// The last note, which is logged once.
    note: String,
    /// Failures of the cluster's API in a row.
    api_failures: u64,
}

/// Credentials that a BMC has refused: BMCs lock accounts.
#[derive(Debug)]
struct LoginRefusal {
    bmc: BmcDetails,
    secret_version: String,
    reason: String,
}

/// The end of a step.
enum StepEnd {
    /// Another step, with the record as it is now.
    Another(Box<HostRecord>),
    /// No other step.
    Last(HostNext),
    /// The record was changed by others meanwhile.
    Superseded,
}

impl HostReconciler {
    /// Reconciles a host until it waits for something.
    pub(super) async fn reconcile(&self, name: &str, memory: &mut HostMemory) -> HostReport {
        let mut report = HostReport::new(name);
        match self.steps(name, memory, &mut report).await {
            Ok(next) => {
                memory.api_failures = 0;
                report.next = next;
                if next == HostNext::Forget {
                    self.claims.release(name);
                }
            }
            Err(error) => {
                memory.api_failures = memory.api_failures.saturating_add(1);
                report.note = Some(error.chain());
                let pause = self.timing.backoff(memory.api_failures, rand::random());
                report.next = HostNext::After(pause);
            }
        }
        report.log(&memory.note);
        memory.note = report.note.clone().unwrap_or_default();
        report
    }

    async fn steps(
        &self,
        name: &str,
        memory: &mut HostMemory,
        report: &mut HostReport,
    ) -> Result<HostNext, Error> {
        let mut known = None;
        for _ in 0..MAX_STEPS {
            let record = match known.take() {
                Some(record) => record,
                None => match self.cluster.host_record(name).await? {
                    Some(record) => record,
                    None => return Ok(HostNext::Forget),
                },
            };
            report.version.clone_from(&record.version);
            match self.step(name, &record, memory, report).await? {
                StepEnd::Another(record) => known = Some(*record),
                StepEnd::Superseded => {}
                StepEnd::Last(next) => return Ok(next),
            }
        }
        report.note = Some(format!("it has not settled after {MAX_STEPS} steps"));
        Ok(HostNext::After(UNENDED))
    }

    async fn step(
        &self,
        name: &str,
        record: &HostRecord,
        memory: &mut HostMemory,
        report: &mut HostReport,
    ) -> Result<StepEnd, Error> {
        let intake = match HostIntake::of(&record.content) {
            Ok(intake) => intake,
            Err(reason) => {
                let is_silent = reason == LeftAlone::Deleted;
                report.note = (!is_silent).then(|| reason.to_string());
                return Ok(StepEnd::Last(HostNext::OnChange));
            }
        };
        if intake.wants_finalizer() {
            let metadata = intake.with_finalizer(true);
            let written = self.cluster.patch_host_metadata(name, record, metadata);
            return Ok(continued(written.await?));
        }
        let observation = self.observe(name, &intake, memory).await?;
        let verdict = verdict(&intake, &observation, &self.timing, rand::random());
        if let BmcOutcome::Answered(seen) = &observation.outcome
            && seen.power != seen.power_before
        {
            let (from, to) = (seen.power_before, seen.power);
            report.changes.push(HostRecordChange::Power { from, to });
        }
        report.note = intake.has_vain_reboot().then(|| {
            "spec.disablePowerOff is set, and its annotation reboot.metal3.io has no effect: remove one of them".to_owned()
        });
        self.carry_out(name, record, &intake, verdict, report).await
    }

    /// Asks the BMC, where the host needs it.
    async fn observe(
        &self,
        name: &str,
        intake: &HostIntake,
        memory: &mut HostMemory,
    ) -> Result<HostObservation, Error> {
        let action = intake.action();
        let observation = |outcome, secret_version| HostObservation {
            action,
            outcome,
            secret_version,
        };
        if action == BmcAction::None {
            return Ok(observation(BmcOutcome::NotAsked, None));
        }
        let bmc = &intake.host.spec.bmc;
        let secret = match bmc.credentials_name.as_str() {
            "" => None,
            name => self.cluster.bmc_secret(name).await?,
        };
        let access = host_access(bmc, secret.as_ref().map(|secret| &secret.content));
        let version = secret.map(|secret| secret.version).unwrap_or_default();
        let access = match access.and_then(|access| self.claimed(name, access)) {
            Ok(access) => access,
            Err(refused) => return Ok(observation(BmcOutcome::NoAccess(refused), None)),
        };
        let is_same = |it: &&LoginRefusal| it.bmc == *bmc && it.secret_version == version;
        if let Some(refusal) = memory.refusal.as_ref().filter(is_same) {
            let outcome = BmcOutcome::Refused {
                reason: refusal.reason.clone(),
                is_new: false,
            };
            return Ok(observation(outcome, Some(version)));
        }
        let target = BmcTarget {
            name: name.to_owned(),
            access,
        };
        let mut results = self.runner.run(vec![target], HostBmcJob(action)).await;
        let result = results.pop().map(|(_, result)| result);
        memory.refusal = None;
        let outcome = match result.unwrap_or(Err(BmcError::Cancelled)) {
            Ok(seen) => BmcOutcome::Answered(seen),
            Err(error @ BmcError::Unauthenticated { .. }) => {
                let reason = error.to_string();
                memory.refusal = Some(LoginRefusal {
                    bmc: bmc.clone(),
                    secret_version: version.clone(),
                    reason: reason.clone(),
                });
                BmcOutcome::Refused {
                    reason,
                    is_new: true,
                }
            }
            Err(error) => BmcOutcome::Failed {
                reason: error.to_string(),
            },
        };
        Ok(observation(outcome, Some(version)))
    }

    fn claimed(&self, name: &str, access: BmcAccess) -> Result<BmcAccess, NoAccess> {
        let claimed = self.claims.claim(&access.endpoint.to_string(), name);
        claimed.map(|()| access).map_err(|other| NoAccess {
            credentials: CredentialsReach::Present,
            reason: format!(
                "spec.bmc.address: the host {other} has the same BMC: correct one of them"
            ),
        })
    }

    async fn carry_out(
        &self,
        name: &str,
        record: &HostRecord,
        intake: &HostIntake,
        verdict: HostVerdict,
        report: &mut HostReport,
    ) -> Result<StepEnd, Error> {
        let mut record = record.clone();
        if verdict.is_changed {
            let status = document(&verdict.status, SystemTime::now().into());
            let surplus = surplus(&verdict.status);
            let written = self
                .cluster
                .apply_host_status(name, &record, &status, &surplus);
            match written.await? {
                HostWrite::Done(written) => record = written,
                other => return Ok(continued(other)),
            }
            report.version.clone_from(&record.version);
        }
        report.changes.extend(changes(intake, &verdict));
        report.error = error(&verdict);
        if !verdict.fulfilled.is_empty() {
            let removed = verdict
                .fulfilled
                .iter()
                .map(|key| ((*key).to_owned(), json!(null)));
            let metadata = json!({ "annotations": removed.collect::<serde_json::Map<_, _>>() });
            let written = self.cluster.patch_host_metadata(name, &record, metadata);
            return Ok(continued(written.await?));
        }
        match verdict.next {
            HostNext::Again => Ok(StepEnd::Another(Box::new(record))),
            HostNext::Release => {
                let metadata = intake.with_finalizer(false);
                let written = self.cluster.patch_host_metadata(name, &record, metadata);
                if let HostWrite::Superseded = written.await? {
                    return Ok(StepEnd::Superseded);
                }
                report.changes.push(HostRecordChange::State {
                    from: intake.state.to_string(),
                    to: "removed".to_owned(),
                    rule: verdict.decision.rule.unwrap_or_default(),
                });
                Ok(StepEnd::Last(HostNext::Forget))
            }
            next => Ok(StepEnd::Last(next)),
        }
    }
}

fn continued(written: HostWrite) -> StepEnd {
    match written {
        HostWrite::Done(record) => StepEnd::Another(Box::new(record)),
        HostWrite::Superseded => StepEnd::Superseded,
        HostWrite::Removed => StepEnd::Last(HostNext::Forget),
    }
}

/// The changes of a record by a verdict.
fn changes(intake: &HostIntake, verdict: &HostVerdict) -> Vec<HostRecordChange> {
    let mut changes = Vec::new();
    let decision = &verdict.decision;
    if decision.state != intake.state {
        changes.push(HostRecordChange::State {
            from: intake.state.to_string(),
            to: decision.state.to_string(),
            rule: decision.rule.unwrap_or_default(),
        });
    }
    let before = intake.host.status.clone().unwrap_or_default();
    let now = &verdict.status;
    let is_same =
        (&before.error_type, &before.error_message) == (&now.error_type, &now.error_message);
    if is_same {
        return changes;
    }
    changes.push(if now.error_type.is_empty() {
        HostRecordChange::Mended(before.error_type)
    } else {
        HostRecordChange::Error {
            kind: now.error_type.clone(),
            message: now.error_message.clone(),
        }
    });
    changes
}

fn error(verdict: &HostVerdict) -> Option<String> {
    let status = &verdict.status;
    let kind = &status.error_type;
    (!kind.is_empty()).then(|| format!("{kind}: {}", status.error_message))
}
