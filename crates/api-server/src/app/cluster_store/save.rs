//! Saving a cluster transaction: the rows that differ, the events and the new revision.

use std::collections::HashMap;
use std::sync::Arc;

use model::Error;
use model::host::Host;
use model::ids::{HostId, InfraEnvId};
use model::time::Timestamp;
use rules::HostList;
use rules::HostState;
use rules::Snapshot;
use sqlx::PgConnection;

use super::load::LoadedSnapshot;
use super::transaction::{ClusterTransaction, LockScope, Refresh};
use super::{ClusterStore, StoredSnapshot};
use crate::db;
use crate::db::{clusters, hosts, infra_envs};

impl ClusterStore {
    /// Stores the differences between `before` and the transaction's snapshot, and its side writes.
    pub(super) async fn save(
        &self,
        connection: &mut PgConnection,
        lock_scope: &LockScope,
        before: &LoadedSnapshot,
        mut change: ClusterTransaction,
    ) -> Result<Arc<StoredSnapshot>, db::Error> {
        let now = change.now;
        let known = &before.stored;
        let mut differences = Differences::find(&known.snapshot, &mut change.snapshot, now);
        differences.move_hosts(&change);
        let new_revision = known.revision + 1;
        for host in &differences.changed {
            change.snapshot.hosts[host.at].revision = new_revision;
        }
        for at in &differences.added {
            change.snapshot.hosts[*at].revision = new_revision;
        }
        self.save_hosts(connection, lock_scope, known, &differences, &change)
            .await?;
        let mut release = known.release.clone();
        let mut revision = known.revision;
        if let LockScope::Cluster(id) = lock_scope {
            let id = *id;
            if let Some(text) = &change.side_writes.pull_secret {
                clusters::set_pull_secret(connection, &self.db.keys().await, id, text).await?;
            }
            if let Some(read) = change.side_writes.release {
                clusters::set_release_info(connection, id, &read).await?;
                change.snapshot.components = self.components.or(&read.components);
                release = read;
            }
            let bump = clusters::RevisionBump {
                record: release != known.release,
                left: differences.is_moved || !differences.removed.is_empty(),
                refresh_due: match change.refresh {
                    Refresh::Done => false,
                    Refresh::Due => true,
                    Refresh::None => before.refresh_due,
                },
            };
            if differences.cluster {
                change.snapshot.cluster.updated_at = now.into();
                let (snapshot, keys) = (&change.snapshot, self.db.keys().await);
                revision = clusters::save(connection, &keys, snapshot, bump, now).await?;
                if clusters::is_preparation_due(&snapshot.cluster) {
                    clusters::notify_preparation(connection).await?;
                }
            } else if differences.any_host()
                || bump.record
                || (bump.refresh_due && !before.refresh_due)
            {
                revision = clusters::touch(connection, id, bump).await?;
            } else if before.refresh_due && !bump.refresh_due {
                clusters::refreshed(connection, id).await?;
            }
            if change.side_writes.delete_cluster {
                infra_envs::leave_cluster(connection, id).await?;
                clusters::delete(connection, id, now).await?;
            }
        }
        if let Some((infra_env, host, secrets)) = &change.side_writes.endpoint {
            hosts::set_endpoint_secrets(
                connection,
                &self.db.keys().await,
                *infra_env,
                *host,
                secrets,
            )
            .await?;
        }
        self.events.insert(connection, &change.events, now).await?;
        Ok(Arc::new(StoredSnapshot {
            revision,
            snapshot: change.snapshot,
            release,
        }))
    }

    async fn save_hosts(
        &self,
        connection: &mut PgConnection,
        lock_scope: &LockScope,
        known: &StoredSnapshot,
        differences: &Differences,
        change: &ClusterTransaction,
    ) -> Result<(), db::Error> {
        let revision = known.revision + 1;
        for host in &differences.removed {
            hosts::delete(connection, host.0, host.1).await?;
        }
        let hosts = &change.snapshot.hosts;
        let is_larger = !differences.added.is_empty() || change.joining.is_some();
        if is_larger && matches!(lock_scope, LockScope::Cluster(_)) {
            check_host_limit(hosts, self.limits.per_cluster)?;
        }
        let added: Vec<&Host> = differences
            .added
            .iter()
            .map(|at| &hosts[*at].record)
            .collect();
        let limit = self.limits.per_infra_env;
        let keys = self.db.keys().await;
        if !hosts::insert(connection, &keys, &added, revision, limit, change.now).await?
            && let Some(host) = added.first()
        {
            return Err(limit_reached("infra-env", host.infra_env_id, limit).into());
        }
        let changed = differences.changed.iter().map(|host| hosts::ChangedHost {
            before: host.before.map(|at| &known.snapshot.hosts[at].record),
            after: &change.snapshot.hosts[host.at].record,
        });
        let unbound = change.unbound.iter().map(|host| hosts::ChangedHost {
            before: None,
            after: &host.record,
        });
        let changed: Vec<hosts::ChangedHost<'_>> = changed.chain(unbound).collect();
        hosts::save(connection, &keys, &changed, revision, change.now).await
    }
}

fn check_host_limit(hosts: &HostList, limit: u32) -> Result<(), Error> {
    let fits = u32::try_from(hosts.len()).is_ok_and(|count| count <= limit);
    match hosts.first().and_then(|host| host.record.cluster_id) {
        Some(cluster) if !fits => Err(limit_reached("cluster", cluster, limit)),
        _ => Ok(()),
    }
}

/// Not 409: agents would stop retrying, although deleting a host frees capacity.
///
/// Source: openshift/assisted-installer-agent, `src/commands/register_node.go`.
fn limit_reached(kind: &str, id: impl std::fmt::Display, limit: u32) -> Error {
    Error::invalid(
        "host_id",
        format!(
            "{kind} {id} has reached the limit of {limit} hosts: delete unused hosts, or raise {}",
            match kind {
                "cluster" => "MAX_HOSTS_PER_CLUSTER",
                _ => "MAX_HOSTS_PER_INFRA_ENV",
            }
        ),
    )
}

/// A changed host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ChangedAt {
    /// Position in the newer snapshot.
    at: usize,
    /// Position in the older one; none for a host that joined.
    before: Option<usize>,
}

/// Differences between two snapshots.
#[derive(Debug, Default)]
struct Differences {
    cluster: bool,
    removed: Vec<(InfraEnvId, HostId)>,
    /// Positions in the newer one.
    added: Vec<usize>,
    changed: Vec<ChangedAt>,
    /// A host moved between the pool and the cluster.
    is_moved: bool,
}

impl Differences {
    /// Compares, and sets `updated_at` of changed hosts. Heartbeats are ignored, they have their own table. Hosts that
    /// both snapshots share (copy on write) are skipped.
    fn find(before: &Snapshot, after: &mut Snapshot, now: Timestamp) -> Self {
        let mut found = Self {
            cluster: before.cluster != after.cluster
                || before.files != after.files
                || before.vip_leases != after.vip_leases,
            ..Self::default()
        };
        let (old, new) = (&before.hosts, &mut after.hosts);
        let mut at = 0;
        while at < old.len().min(new.len()) {
            if !new.is_shared(at, old, at) {
                if key(&old[at]) != key(&new[at]) {
                    break;
                }
                found.compare(old, at, new, at, now);
            }
            at += 1;
        }
        // From here on a host was removed, or hosts are in another order.
        let mut rest: HashMap<_, usize> = (at..old.len()).map(|at| (key(&old[at]), at)).collect();
        for at in at..new.len() {
            match rest.remove(&key(&new[at])) {
                Some(old_at) => found.compare(old, old_at, new, at, now),
                None => found.added.push(at),
            }
        }
        found.removed = rest.into_keys().collect();
        // Sorted: a global order of row locks prevents deadlocks.
        found.removed.sort_unstable();
        found
    }

    fn compare(
        &mut self,
        old: &HostList,
        old_at: usize,
        new: &mut HostList,
        at: usize,
        now: Timestamp,
    ) {
        let (before, after) = (&old[old_at], &new[at]);
        if before.observed == after.observed && before.record == after.record {
            // One copy in memory: a refresh visits every host, and changes few.
            new.share(at, old, old_at);
        } else if is_changed(&before.record, &after.record) {
            new[at].record.updated_at = now.into();
            let before = Some(old_at);
            self.changed.push(ChangedAt { at, before });
        }
    }

    /// Hosts that move between the pool and the cluster keep their row.
    fn move_hosts(&mut self, change: &ClusterTransaction) {
        self.is_moved = change.joining.is_some() || !change.unbound.is_empty();
        let left: Vec<_> = change.unbound.iter().map(key).collect();
        self.removed.retain(|removed| !left.contains(removed));
        let hosts = &change.snapshot.hosts;
        let is_joining = |at: &usize| Some(key(&hosts[*at])) == change.joining;
        let (joining, added): (Vec<usize>, _) = std::mem::take(&mut self.added)
            .into_iter()
            .partition(is_joining);
        self.added = added;
        let joining = joining.into_iter().map(|at| ChangedAt { at, before: None });
        self.changed.extend(joining);
    }

    fn any_host(&self) -> bool {
        !(!self.is_moved
            && self.removed.is_empty()
            && self.added.is_empty()
            && self.changed.is_empty())
    }
}

fn key(host: &HostState) -> (InfraEnvId, HostId) {
    (host.record.infra_env_id, host.record.id)
}

fn is_changed(before: &Host, after: &Host) -> bool {
    let mut after = after.clone();
    (after.checked_in_at, after.timestamp) = (before.checked_in_at, before.timestamp);
    *before != after
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(numbers: &[u128]) -> Snapshot {
        let host = |number: &u128| {
            HostState::new(Host {
                id: HostId(uuid::Uuid::from_u128(*number)),
                ..Host::default()
            })
        };
        Snapshot::new(
            model::cluster::Cluster::default(),
            numbers.iter().map(host).collect::<Vec<_>>(),
        )
    }

    #[test]
    fn added_removed_and_changed_hosts_are_found() {
        let before = hosts(&[1, 2, 3, 4]);
        let mut after = before.clone();
        after.hosts[3].record.bootstrap = true;
        after.hosts.retain(|host| host.record.id.0.as_u128() != 2);
        after.hosts.extend(hosts(&[5]).hosts.iter().cloned());
        let found = Differences::find(&before, &mut after, service::clock::now());
        assert_eq!(found.removed.len(), 1);
        assert_eq!(found.removed[0].1.0.as_u128(), 2);
        let changed = ChangedAt {
            at: 2,
            before: Some(3),
        };
        assert_eq!((found.changed, found.added), (vec![changed], vec![3]));
        assert!(!found.cluster);
    }

    #[test]
    fn heartbeats_are_no_difference() {
        let before = hosts(&[1, 2]);
        let mut after = before.clone();
        after.hosts[0].record.checked_in_at = service::clock::now().into();
        let found = Differences::find(&before, &mut after, service::clock::now());
        assert!(!found.any_host());
        assert!(!after.hosts.is_shared(0, &before.hosts, 0));
    }

    #[test]
    fn hosts_without_differences_are_shared_again() {
        let before = hosts(&[1, 2]);
        let mut after = before.clone();
        for host in &mut after.hosts {
            host.record.bootstrap = false;
        }
        assert!(!after.hosts.is_shared(0, &before.hosts, 0));
        Differences::find(&before, &mut after, service::clock::now());
        assert!((0..2).all(|at| after.hosts.is_shared(at, &before.hosts, at)));
    }
}
