//! Leases: for each purpose, one process at a time acts on a cluster, and a second one learns whose it is.
//!
//! Clocks are not compared, since they may be hours apart: a lease counts as abandoned when its record has not changed
//! for its whole duration, measured here, as Kubernetes' own leader election does.

use std::time::{Duration, SystemTime};

use chrono::SecondsFormat;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::core::DynamicObject;
use model::Error;
use model::time::Timestamp;
use serde_json::json;
use tokio::time::Instant;

use super::connect::{KubernetesCluster, is_conflict, is_missing, refused};
use super::listed::member;
use super::managed_fields::last_write;
use super::resources::LEASES;

/// Renewals within the duration of a lease.
const RENEWALS: u32 = 4;

/// The use of a lease.
#[derive(Debug, PartialEq, Eq)]
pub struct LeasePurpose {
    /// Name of its record.
    pub name: &'static str,
    /// The work that is under way, as `repair`.
    pub noun: &'static str,
    /// The remedy for a second one.
    pub remedy: &'static str,
}

/// Repairs of nodes.
pub static REPAIR_LEASE: LeasePurpose = LeasePurpose {
    name: "atoll-node-repair",
    noun: "repair",
    remedy: "wait for its end",
};
/// Controllers of hosts.
pub static CONTROLLER_LEASE: LeasePurpose = LeasePurpose {
    name: "atoll-host-controller",
    noun: "host controller",
    remedy: "stop it first",
};

/// The time that a lease takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTerms {
    /// A lease without a change for so long is abandoned.
    pub duration: Duration,
    /// Interval of looking for a change.
    pub poll_interval: Duration,
}

impl Default for LeaseTerms {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(30),
            poll_interval: Duration::from_secs(2),
        }
    }
}

/// The present holder of a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseHolder {
    /// As `alice@bastion, process 4711`; empty if it gave the lease back at this moment.
    pub name: String,
    /// By its own clock.
    pub since: String,
    /// The last renewal, by its own clock.
    pub seen: String,
}

/// The answer to a claim of a lease.
#[derive(Debug)]
pub enum LeaseClaim {
    /// It is held by the claimant.
    Granted(Box<ClusterLease>),
    /// Another process holds it.
    Refused(LeaseHolder),
}

/// A lease that is held. It has to be renewed several times within its duration.
#[derive(Debug)]
pub struct ClusterLease {
    cluster: KubernetesCluster,
    purpose: &'static LeasePurpose,
    record: DynamicObject,
    terms: LeaseTerms,
}

impl ClusterLease {
    /// Takes the lease for `holder`, as `alice@bastion, process 4711`; waits for the duration of one that seems abandoned.
    ///
    /// Errors: Conflict – another process has it, with its holder and since when; those of the cluster.
    pub async fn take(
        cluster: &KubernetesCluster,
        purpose: &'static LeasePurpose,
        holder: &str,
        terms: LeaseTerms,
    ) -> Result<Self, Error> {
        match Self::claim(cluster, purpose, holder, terms).await? {
            LeaseClaim::Granted(lease) => Ok(*lease),
            LeaseClaim::Refused(other) => Err(other.error(purpose)),
        }
    }

    /// As [`Self::take`]; another holder is an answer.
    ///
    /// Errors: those of the cluster.
    pub async fn claim(
        cluster: &KubernetesCluster,
        purpose: &'static LeasePurpose,
        holder: &str,
        terms: LeaseTerms,
    ) -> Result<LeaseClaim, Error> {
        let granted = |record| {
            let (cluster, terms) = (cluster.clone(), terms);
            LeaseClaim::Granted(Box::new(Self {
                cluster,
                purpose,
                record,
                terms,
            }))
        };
        let api = cluster.api(&LEASES);
        let (params, wanted) = (PostParams::default(), lease(purpose, holder, terms, None));
        match api.create(&params, &wanted).await {
            Ok(record) => return Ok(granted(record)),
            Err(error) if is_conflict(&error) => {}
            Err(error) => return Err(refused(&LEASES, error)),
        }
        let Some(present) = cluster.find(&LEASES, purpose.name).await? else {
            return Ok(LeaseClaim::Refused(LeaseHolder::of(None)));
        };
        let is_held = !LeaseHolder::of(Some(&present)).name.is_empty();
        if is_held && let Some(alive) = renewed(cluster, purpose, &present, terms).await? {
            return Ok(LeaseClaim::Refused(alive));
        }
        // With the version that was seen: of two that wait, one gets it.
        let version = present.metadata.resource_version.clone();
        let taken = lease(purpose, holder, terms, version);
        match api.replace(purpose.name, &params, &taken).await {
            Ok(record) => Ok(granted(record)),
            Err(error) if is_conflict(&error) => {
                let record = cluster.find(&LEASES, purpose.name).await?;
                Ok(LeaseClaim::Refused(LeaseHolder::of(record.as_ref())))
            }
            Err(error) => Err(refused(&LEASES, error)),
        }
    }

    /// The time within which it has to be renewed.
    pub fn duration(&self) -> Duration {
        self.terms.duration
    }

    /// The time of its last renewal by the clock of the cluster; none of old servers.
    pub fn renewed_at(&self) -> Option<Timestamp> {
        last_write(&self.record)
    }

    /// Shows that this process is alive.
    ///
    /// Errors: Conflict – another process has taken it: change nothing more; those of the cluster.
    pub async fn renew(&mut self) -> Result<(), Error> {
        let mut record = self.record.clone();
        record.data["spec"]["renewTime"] = json!(now());
        let api = self.cluster.api(&LEASES);
        let (name, params) = (self.purpose.name, PostParams::default());
        match api.replace(name, &params, &record).await {
            Ok(record) => {
                self.record = record;
                Ok(())
            }
            Err(error) if is_conflict(&error) => {
                let record = self.cluster.find(&LEASES, name).await?;
                Err(LeaseHolder::of(record.as_ref()).error(self.purpose))
            }
            Err(error) => Err(refused(&LEASES, error)),
        }
    }

    /// Renews it until it is lost: another process has it, or the next one could soon take it, since the cluster was
    /// silent for three quarters of its duration. Returns the reason.
    pub async fn keep(&mut self) -> Error {
        let limit = self.terms.duration * 3 / 4;
        // Before the request: the cluster may have counted from then on.
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(self.terms.duration / RENEWALS).await;
            let begun = Instant::now();
            match tokio::time::timeout_at(renewed + limit, self.renew()).await {
                Ok(Ok(())) => renewed = begun,
                Ok(Err(lost @ Error::Conflict { .. })) => return lost,
                Ok(Err(error)) => tracing::debug!(%error, "a lease was not renewed"),
                Err(_) => {
                    let seconds = limit.as_secs();
                    return Error::conflict(format!(
                        "the lease could not be renewed within {seconds} s"
                    ));
                }
            }
        }
    }

    /// Gives it back.
    ///
    /// Errors: those of the cluster.
    pub async fn release(self) -> Result<(), Error> {
        let own = Preconditions {
            resource_version: self.record.metadata.resource_version.clone(),
            uid: self.record.metadata.uid.clone(),
        };
        let params = DeleteParams::default().preconditions(own);
        let api = self.cluster.api(&LEASES);
        match api.delete(self.purpose.name, &params).await {
            Ok(_) => Ok(()),
            // Another one has it, or had it and gave it back.
            Err(error) if is_conflict(&error) || is_missing(&error) => Ok(()),
            Err(error) => Err(refused(&LEASES, error)),
        }
    }
}

impl LeaseHolder {
    fn of(record: Option<&DynamicObject>) -> Self {
        let text = |pointer| record.map_or_else(String::new, |record| member(record, pointer));
        Self {
            name: text("/spec/holderIdentity"),
            since: text("/spec/acquireTime"),
            seen: text("/spec/renewTime"),
        }
    }

    fn error(&self, purpose: &LeasePurpose) -> Error {
        let Self { name, since, seen } = self;
        let LeasePurpose { noun, remedy, .. } = purpose;
        Error::conflict(if name.is_empty() {
            format!("another {noun} ended at this moment: run the command again")
        } else {
            format!("a {noun} of {name} is under way since {since}, last seen {seen}: {remedy}")
        })
    }
}

/// Waits for a change within the duration of the lease: the holder that made it; none of an abandoned lease.
async fn renewed(
    cluster: &KubernetesCluster,
    purpose: &LeasePurpose,
    seen: &DynamicObject,
    terms: LeaseTerms,
) -> Result<Option<LeaseHolder>, Error> {
    let since = Instant::now();
    while since.elapsed() < terms.duration {
        tokio::time::sleep(terms.poll_interval).await;
        let now = cluster.find(&LEASES, purpose.name).await?;
        let version = now.as_ref().map(|now| &now.metadata.resource_version);
        if version != Some(&seen.metadata.resource_version) {
            return Ok(Some(LeaseHolder::of(now.as_ref())));
        }
    }
    Ok(None)
}

fn lease(
    purpose: &LeasePurpose,
    holder: &str,
    terms: LeaseTerms,
    resource_version: Option<String>,
) -> DynamicObject {
    let mut record = DynamicObject::new(purpose.name, &LEASES.api_resource());
    record.metadata.resource_version = resource_version;
    let now = now();
    record.data = json!({ "spec": {
        "holderIdentity": holder,
        "leaseDurationSeconds": terms.duration.as_secs().max(1),
        "acquireTime": now,
        "renewTime": now,
    } });
    record
}

fn now() -> String {
    Timestamp::from(SystemTime::now()).to_rfc3339_opts(SecondsFormat::Micros, true)
}
