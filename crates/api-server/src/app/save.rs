//! Saving a change: the rows that differ, the events and the new revision.

use std::collections::HashMap;
use std::sync::Arc;

use model::Error;
use model::host::Host;
use model::ids::{HostId, InfraEnvId};
use model::time::Timestamp;
use rules::{HostState, Hosts, Snapshot};
use sqlx::PgConnection;

use super::transaction::{Place, Refresh, Work};
use super::{App, Stored, events};
use crate::db;
use crate::db::{clusters, events as event_rows, hosts, infra_envs};

impl App {
    /// Stores what `work` changed; `before` is what it began with.
    pub(super) async fn save(
        &self,
        connection: &mut PgConnection,
        place: Place,
        before: &super::transaction::Before,
        mut work: Work,
    ) -> Result<Arc<Stored>, db::Error> {
        let now = work.now;
        let known = &before.stored;
        let differences = Differences::find(&known.snapshot, &mut work.snapshot, now);
        self.save_hosts(connection, place, known.revision + 1, &differences, &work)
            .await?;
        let mut release_info = known.release_info.clone();
        let mut revision = known.revision;
        if let Place::Cluster(id) = place {
            if let Some(text) = &work.beside.pull_secret {
                clusters::set_pull_secret(connection, id, text).await?;
            }
            if let Some(info) = work.beside.release_info {
                clusters::set_release_info(connection, id, &info).await?;
                release_info = Some(info);
            }
            let bump = clusters::Bump {
                record: release_info != known.release_info,
                left: !differences.removed.is_empty(),
                refresh_due: match work.refresh {
                    Refresh::Done => false,
                    Refresh::Due => true,
                    Refresh::None => before.refresh_due,
                },
            };
            if differences.cluster || work.snapshot.files != known.snapshot.files {
                work.snapshot.cluster.updated_at = now.into();
                let (cluster, files) = (&work.snapshot.cluster, work.snapshot.files);
                revision = clusters::save(connection, cluster, files, bump, now).await?;
                if clusters::is_preparation_due(cluster) {
                    clusters::notify_preparation(connection).await?;
                }
            } else if differences.any_host()
                || bump.record
                || (bump.refresh_due && !before.refresh_due)
            {
                revision = clusters::touch(connection, id, bump).await?;
            } else if before.refresh_due {
                clusters::refreshed(connection, id).await?;
            }
            if work.beside.delete_cluster {
                infra_envs::leave_cluster(connection, id).await?;
                clusters::delete(connection, id, now).await?;
            }
        }
        if let Some((infra_env, host, secrets)) = &work.beside.endpoint {
            hosts::set_endpoint_secrets(connection, *infra_env, *host, secrets).await?;
        }
        let records = events::to_record(&work.events, now);
        event_rows::insert(connection, &records, self.event_limits, now).await?;
        Ok(Arc::new(Stored {
            revision,
            snapshot: work.snapshot,
            release_info,
        }))
    }

    async fn save_hosts(
        &self,
        connection: &mut PgConnection,
        place: Place,
        revision: i64,
        differences: &Differences,
        work: &Work,
    ) -> Result<(), db::Error> {
        for host in &differences.removed {
            hosts::delete(connection, host.0, host.1).await?;
        }
        for at in &differences.added {
            let hosts = &work.snapshot.hosts;
            if matches!(place, Place::Cluster(_)) {
                check_room(hosts, self.settings.max_hosts_per_cluster)?;
            }
            let host = &hosts[*at].record;
            let limit = self.settings.max_hosts_per_infra_env;
            if !hosts::insert(connection, host, revision, limit.cast_signed(), work.now).await? {
                return Err(full("infra-env", host.infra_env_id, limit).into());
            }
        }
        let changed: Vec<&Host> = differences
            .changed
            .iter()
            .map(|at| &work.snapshot.hosts[*at].record)
            .collect();
        hosts::save(connection, &changed, revision, work.now).await
    }
}

fn check_room(hosts: &Hosts, limit: u32) -> Result<(), Error> {
    let fits = u32::try_from(hosts.len()).is_ok_and(|count| count <= limit);
    match hosts.first().and_then(|host| host.record.cluster_id) {
        Some(cluster) if !fits => Err(full("cluster", cluster, limit)),
        _ => Ok(()),
    }
}

/// Not 409: agents would wait for ever, while a host that is deleted makes room.
fn full(kind: &str, id: impl std::fmt::Display, limit: u32) -> Error {
    Error::invalid(
        "host_id",
        format!(
            "{kind} {id} takes no more than {limit} hosts: delete hosts that are not used, or raise {}",
            match kind {
                "cluster" => "MAX_HOSTS_PER_CLUSTER",
                _ => "MAX_HOSTS_PER_INFRA_ENV",
            }
        ),
    )
}

/// What differs between two snapshots.
#[derive(Debug, Default)]
struct Differences {
    cluster: bool,
    removed: Vec<(InfraEnvId, HostId)>,
    /// Positions in the newer one.
    added: Vec<usize>,
    /// Positions in the newer one.
    changed: Vec<usize>,
}

impl Differences {
    /// Compares, and stamps the changed hosts. Times of polls do not count: they are stored elsewhere. Hosts that both
    /// share are not looked at.
    fn find(before: &Snapshot, after: &mut Snapshot, now: Timestamp) -> Self {
        let mut found = Self {
            cluster: before.cluster != after.cluster,
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
        // In one order everywhere, so that two transactions cannot wait for each other.
        found.removed.sort_unstable();
        found
    }

    fn compare(&mut self, old: &Hosts, old_at: usize, new: &mut Hosts, at: usize, now: Timestamp) {
        if is_changed(&old[old_at].record, &new[at].record) {
            new[at].record.updated_at = now.into();
            self.changed.push(at);
        }
    }

    fn any_host(&self) -> bool {
        !(self.removed.is_empty() && self.added.is_empty() && self.changed.is_empty())
    }
}

fn key(host: &HostState) -> (InfraEnvId, HostId) {
    (host.record.infra_env_id, host.record.id)
}

fn is_changed(before: &Host, after: &Host) -> bool {
    if before == after {
        return false;
    }
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
        assert_eq!((found.changed, found.added), (vec![2], vec![3]));
        assert!(!found.cluster);
    }

    #[test]
    fn the_time_of_a_poll_is_no_change() {
        let before = hosts(&[1, 2]);
        let mut after = before.clone();
        after.hosts[0].record.checked_in_at = service::clock::now().into();
        let found = Differences::find(&before, &mut after, service::clock::now());
        assert!(!found.any_host());
    }
}
