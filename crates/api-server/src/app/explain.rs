//! Use cases of explanations: why clusters, and unbound hosts of infra-envs, are not ready or stuck.

use std::sync::Arc;

use model::Error;
use model::explain::{Explanation, ExplanationList};
use model::ids::{ClusterId, InfraEnvId};
use model::time::Timestamp;
use rules::HostState;
use rules::explain::is_problem;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::access::{AccessControl, PathIds};
use super::infra_envs::find_infra_env;
use super::{ClusterStore, Heartbeats};
use crate::auth::Caller;
use crate::blocking;
use crate::db::{Database, InfraEnvRow, clusters, events, hosts, tx};

/// Subjects that one page examines, unless the request says otherwise, and at most.
pub(crate) const PAGE: usize = 20;
pub(crate) const MAX_PAGE: usize = 100;
/// Causes of each explanation in a list; the explanation of one cluster has more.
const LISTED_CAUSES: usize = 50;
/// Hosts above which an explanation leaves the runtime: it would delay other requests.
const LARGE: usize = 16;

/// Position in the list of all subjects: clusters by id, then infra-envs by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListPosition {
    /// After that cluster; none: at the beginning.
    Cluster(Option<Uuid>),
    /// After that infra-env; none: at the first one.
    InfraEnv(Option<Uuid>),
}

impl std::fmt::Display for ListPosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kind, id) = match self {
            Self::Cluster(id) => ("cluster", id),
            Self::InfraEnv(id) => ("infra-env", id),
        };
        write!(f, "{kind}:{}", id.unwrap_or_default())
    }
}

impl std::str::FromStr for ListPosition {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (kind, id) = text.split_once(':').ok_or(())?;
        let id = Uuid::parse_str(id).map_err(|_| ())?;
        match kind {
            "cluster" => Ok(Self::Cluster(Some(id))),
            "infra-env" => Ok(Self::InfraEnv(Some(id))),
            _ => Err(()),
        }
    }
}

/// Explanations of clusters and pool hosts.
#[derive(Debug)]
pub(crate) struct Explanations {
    db: Database,
    clusters: Arc<ClusterStore>,
    heartbeats: Arc<Heartbeats>,
    access: Arc<AccessControl>,
    /// One at a time: each costs as much as a refresh of the cluster.
    permit: Semaphore,
}

impl Explanations {
    /// Explanations of the records in the database.
    pub(super) fn new(
        db: Database,
        clusters: Arc<ClusterStore>,
        heartbeats: Arc<Heartbeats>,
        access: Arc<AccessControl>,
    ) -> Self {
        Self {
            db,
            clusters,
            heartbeats,
            access,
            permit: Semaphore::new(1),
        }
    }

    /// Why a cluster is not ready or stuck.
    ///
    /// Errors: NotFound.
    pub(crate) async fn of_cluster(&self, id: ClusterId) -> Result<Explanation, Error> {
        let _permit = self.permit.acquire().await;
        let now = service::clock::now();
        let mut stored = self.clusters.stored(id).await?;
        let failures = tx("read failure times", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            events::failure_times(&mut connection, Some(id), None).await
        })
        .await?;
        let is_large = stored.snapshot.hosts.len() > LARGE;
        Ok(blocking::unless_short(is_large, || {
            let snapshot = &mut Arc::make_mut(&mut stored).snapshot;
            self.heartbeats.observe(snapshot, now);
            rules::explain::cluster(snapshot, &failures, &self.clusters.policy, now)
        }))
    }

    /// Why the unbound hosts of an infra-env are not ready.
    async fn of_pool(&self, id: InfraEnvId, now: Timestamp) -> Result<Explanation, Error> {
        let InfraEnvRow {
            record: infra_env,
            components,
            ..
        } = find_infra_env(&self.db, id).await?;
        let agent = self.clusters.components.or(&components).agent;
        let (rows, failures) = tx("read pool hosts", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            let rows = hosts::of_infra_env(&mut connection, &self.db.keys().await, id).await?;
            let failures = events::failure_times(&mut connection, None, Some(id)).await?;
            Ok((rows, failures))
        })
        .await?;
        let observed = self.heartbeats.observed(now);
        let records = rows.into_iter().map(|row| row.record);
        let unbound = records.filter(|record| record.cluster_id.is_none());
        let hosts: Vec<HostState> = unbound
            .map(|mut record| {
                self.heartbeats.apply(&mut record);
                let mut host = HostState::new(record);
                host.observed = observed;
                host
            })
            .collect();
        Ok(blocking::unless_short(hosts.len() > LARGE, || {
            let policy = &self.clusters.policy;
            rules::explain::pool(&infra_env, &hosts, &agent, &failures, policy, now)
        }))
    }

    /// Everything that is not ready or stuck and that the caller reaches, among the next `limit` subjects after a
    /// position.
    pub(crate) async fn list(
        &self,
        caller: &Caller,
        after: ListPosition,
        limit: usize,
    ) -> Result<ExplanationList, Error> {
        let count = i64::try_from(limit).unwrap_or(i64::MAX);
        let (cluster_ids, infra_env_ids) = tx("list subjects of explanations", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            let (found, after) = match after {
                ListPosition::Cluster(after) => (
                    clusters::ids_after(&mut connection, after, count).await?,
                    None,
                ),
                ListPosition::InfraEnv(after) => (Vec::new(), after),
            };
            let rest = count - i64::try_from(found.len()).unwrap_or(count);
            let pools = hosts::pools_after(&mut connection, after, rest).await?;
            Ok((found, pools))
        })
        .await?;
        let is_full = cluster_ids.len() + infra_env_ids.len() == limit;
        let last_cluster = cluster_ids
            .last()
            .map(|id| ListPosition::Cluster(Some(id.0)));
        let last_pool = infra_env_ids
            .last()
            .map(|id| ListPosition::InfraEnv(Some(id.0)));
        let next = last_pool.or(last_cluster).filter(|_| is_full);
        let mut explanations = Vec::new();
        for id in cluster_ids {
            let ids = PathIds {
                cluster: Some(id),
                infra_env: None,
            };
            explanations.push(match self.access.check_subjects(caller, ids).await {
                Ok(()) => self.of_cluster(id).await,
                Err(error) => Err(error),
            });
        }
        let now = service::clock::now();
        for id in infra_env_ids {
            let ids = PathIds {
                cluster: None,
                infra_env: Some(id),
            };
            explanations.push(match self.access.check_subjects(caller, ids).await {
                Ok(()) => self.of_pool(id, now).await,
                Err(error) => Err(error),
            });
        }
        let mut items = Vec::new();
        for explanation in explanations {
            match explanation {
                Ok(found) if is_problem(&found) => items.push(shortened(found)),
                // Out of the caller's reach, or deleted since the listing.
                Ok(_) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(ExplanationList {
            items,
            next: next.map_or_else(String::new, |next| next.to_string()),
        })
    }
}

fn shortened(mut explanation: Explanation) -> Explanation {
    let omitted = explanation.causes.len().saturating_sub(LISTED_CAUSES);
    explanation.causes.truncate(LISTED_CAUSES);
    explanation.omitted_causes += i64::try_from(omitted).unwrap_or(i64::MAX);
    explanation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_they_are_written() {
        for position in [
            ListPosition::Cluster(Some(Uuid::from_u128(7))),
            ListPosition::InfraEnv(Some(Uuid::from_u128(9))),
        ] {
            assert_eq!(position.to_string().parse(), Ok(position));
        }
        for wrong in [
            "",
            "cluster",
            "cluster:x",
            "host:00000000-0000-0000-0000-000000000007",
        ] {
            assert_eq!(wrong.parse::<ListPosition>(), Err(()), "{wrong}");
        }
    }
}
