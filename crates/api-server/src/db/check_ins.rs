//! Statements about heartbeats of hosts.

use model::ids::{ClusterId, HostId, InfraEnvId};
use model::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::Error;

/// The last heartbeat of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CheckIn {
    /// The infra-env of the host.
    pub(crate) infra_env_id: InfraEnvId,
    /// The host.
    pub(crate) host_id: HostId,
    /// By the server's clock.
    pub(crate) checked_in_at: Timestamp,
    /// The host's clock minus the server's, as of its last poll. Units: seconds.
    pub(crate) clock_offset_s: Option<i64>,
}

/// Heartbeats that prove no connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExpiredHeartbeats {
    /// Earlier ones.
    pub(crate) before: Timestamp,
    /// Later ones: of before the clock was set back. None: all are earlier.
    pub(crate) after: Option<Timestamp>,
}

/// Writes a batch; deleted hosts are skipped. Stored heartbeats stay when they are newer, unless they are after
/// `ahead`: the clock was set back.
pub(crate) async fn flush(
    connection: &mut PgConnection,
    batch: &[CheckIn],
    ahead: Timestamp,
) -> Result<(), Error> {
    let infra_envs: Vec<Uuid> = batch
        .iter()
        .map(|check_in| check_in.infra_env_id.0)
        .collect();
    let hosts: Vec<Uuid> = batch.iter().map(|check_in| check_in.host_id.0).collect();
    let times: Vec<Timestamp> = batch
        .iter()
        .map(|check_in| check_in.checked_in_at)
        .collect();
    let offsets: Vec<Option<i64>> = batch
        .iter()
        .map(|check_in| check_in.clock_offset_s)
        .collect();
    sqlx::query!(
        "insert into host_check_ins (infra_env_id, host_id, checked_in_at, clock_offset_s)
        select fresh.infra_env_id, fresh.host_id, fresh.checked_in_at, fresh.clock_offset_s
        from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::bigint[])
            as fresh (infra_env_id, host_id, checked_in_at, clock_offset_s)
        join hosts on hosts.infra_env_id = fresh.infra_env_id and hosts.id = fresh.host_id
        order by fresh.infra_env_id, fresh.host_id
        for key share of hosts
        on conflict (infra_env_id, host_id) do update
        set checked_in_at = excluded.checked_in_at,
            clock_offset_s = coalesce(excluded.clock_offset_s, host_check_ins.clock_offset_s)
        where host_check_ins.checked_in_at < excluded.checked_in_at or host_check_ins.checked_in_at > $5",
        &infra_envs,
        &hosts,
        &times,
        &offsets as &[Option<i64>],
        ahead
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The flushed heartbeats of a cluster's hosts, of any replica.
pub(crate) async fn of_cluster(
    connection: &mut PgConnection,
    cluster: ClusterId,
) -> Result<Vec<CheckIn>, Error> {
    let rows = sqlx::query!(
        "select checks.infra_env_id, checks.host_id, checks.checked_in_at, checks.clock_offset_s
        from hosts
        join host_check_ins checks on checks.infra_env_id = hosts.infra_env_id and checks.host_id = hosts.id
        where hosts.cluster_id = $1",
        cluster.0
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| CheckIn {
            infra_env_id: InfraEnvId(row.infra_env_id),
            host_id: HostId(row.host_id),
            checked_in_at: row.checked_in_at,
            clock_offset_s: row.clock_offset_s,
        })
        .collect())
}
