//! The lease of a repair: only one is under way in a cluster, and a second person learns whose it is.
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

use super::connect::{KubernetesCluster, is_conflict, refused};
use super::listed::member;
use super::resources::LEASES;

/// Name of the lease.
const NAME: &str = "atoll-node-repair";

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

/// A lease that is held. It has to be renewed several times within its duration.
#[derive(Debug)]
pub struct RepairLease {
    cluster: KubernetesCluster,
    record: DynamicObject,
    terms: LeaseTerms,
}

impl RepairLease {
    /// Takes the lease for `holder`, as `alice@bastion, process 4711`; waits for the duration of one that seems abandoned.
    ///
    /// Errors: Conflict – another repair is under way, with its holder and since when; those of the cluster.
    pub async fn take(
        cluster: &KubernetesCluster,
        holder: &str,
        terms: LeaseTerms,
    ) -> Result<Self, Error> {
        let held = |record| Self {
            cluster: cluster.clone(),
            record,
            terms,
        };
        let api = cluster.api(&LEASES);
        let (params, wanted) = (PostParams::default(), lease(holder, terms, None));
        match api.create(&params, &wanted).await {
            Ok(record) => return Ok(held(record)),
            Err(error) if is_conflict(&error) => {}
            Err(error) => return Err(refused(&LEASES, error)),
        }
        let Some(present) = cluster.find(&LEASES, NAME).await? else {
            return Err(ended_now());
        };
        if !holder_of(&present).is_empty() {
            is_abandoned(cluster, &present, terms).await?;
        }
        // With the version that was seen: of two that wait, one gets it.
        let taken = lease(holder, terms, present.metadata.resource_version.clone());
        match api.replace(NAME, &params, &taken).await {
            Ok(record) => Ok(held(record)),
            Err(error) if is_conflict(&error) => Err(match cluster.find(&LEASES, NAME).await? {
                Some(record) => under_way(&record),
                None => ended_now(),
            }),
            Err(error) => Err(refused(&LEASES, error)),
        }
    }

    /// The time within which it has to be renewed.
    pub fn duration(&self) -> Duration {
        self.terms.duration
    }

    /// Shows that this repair is alive.
    ///
    /// Errors: Conflict – another repair has taken it: change nothing more; those of the cluster.
    pub async fn renew(&mut self) -> Result<(), Error> {
        let mut record = self.record.clone();
        record.data["spec"]["renewTime"] = json!(now());
        let api = self.cluster.api(&LEASES);
        match api.replace(NAME, &PostParams::default(), &record).await {
            Ok(record) => {
                self.record = record;
                Ok(())
            }
            Err(error) if is_conflict(&error) => {
                let record = self.cluster.find(&LEASES, NAME).await?;
                Err(record.map_or_else(ended_now, |record| under_way(&record)))
            }
            Err(error) => Err(refused(&LEASES, error)),
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
        match self.cluster.api(&LEASES).delete(NAME, &params).await {
            Ok(_) => Ok(()),
            // Another one has it.
            Err(error) if is_conflict(&error) => Ok(()),
            Err(error) => Err(refused(&LEASES, error)),
        }
    }
}

/// Waits until the lease has been as it is for its duration.
async fn is_abandoned(
    cluster: &KubernetesCluster,
    seen: &DynamicObject,
    terms: LeaseTerms,
) -> Result<(), Error> {
    let since = Instant::now();
    while since.elapsed() < terms.duration {
        tokio::time::sleep(terms.poll_interval).await;
        let now = cluster.find(&LEASES, NAME).await?.ok_or_else(ended_now)?;
        if now.metadata.resource_version != seen.metadata.resource_version {
            return Err(under_way(&now));
        }
    }
    Ok(())
}

fn lease(holder: &str, terms: LeaseTerms, resource_version: Option<String>) -> DynamicObject {
    let mut record = DynamicObject::new(NAME, &LEASES.api_resource());
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

fn holder_of(record: &DynamicObject) -> String {
    member(record, "/spec/holderIdentity")
}

fn under_way(record: &DynamicObject) -> Error {
    let since: String = member(record, "/spec/acquireTime");
    let seen: String = member(record, "/spec/renewTime");
    let holder = holder_of(record);
    Error::conflict(format!(
        "a repair of {holder} is under way since {since}, last seen {seen}: wait for its end"
    ))
}

fn ended_now() -> Error {
    Error::conflict("another repair ended at this moment: run the command again")
}
