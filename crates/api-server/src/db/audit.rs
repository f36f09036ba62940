//! Statements about audit records.

use model::audit::AuditRecord;
use model::ids::{ClusterId, HostId, InfraEnvId};
use model::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::Error;

/// Part of the log with a bound of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuditRing {
    /// Changes that were made, or may have been.
    Changes,
    /// Changes that were refused.
    Refusals,
}

impl AuditRing {
    /// The ring of a record with that status of the response.
    pub(crate) fn of(status: u16) -> Self {
        match status {
            400..499 => Self::Refusals,
            _ => Self::Changes,
        }
    }
}

/// Appends records in order; returns the ids that the table assigns.
pub(crate) async fn insert(
    connection: &mut PgConnection,
    records: &[&AuditRecord],
) -> Result<Vec<i64>, Error> {
    let text = |member: fn(&AuditRecord) -> &String| -> Vec<String> {
        records.iter().map(|one| member(one).clone()).collect()
    };
    let ids = |member: fn(&AuditRecord) -> Option<Uuid>| -> Vec<Option<Uuid>> {
        records.iter().map(|one| member(one)).collect()
    };
    let times: Vec<Timestamp> = records
        .iter()
        .map(|record| record.time.0.unwrap_or_default())
        .collect();
    let statuses: Vec<i16> = records
        .iter()
        .map(|record| i16::try_from(record.status).unwrap_or_default())
        .collect();
    let rows = sqlx::query_scalar!(
        "insert into audit_records (
            recorded_at, user_name, org_id, operation, method, path, cluster_id, infra_env_id, host_id, status,
            request_id
        )
        select fresh.recorded_at, fresh.user_name, fresh.org_id, fresh.operation, fresh.method, fresh.path,
            fresh.cluster_id, fresh.infra_env_id, fresh.host_id, fresh.status, fresh.request_id
        from unnest(
            $1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::uuid[], $8::uuid[],
            $9::uuid[], $10::smallint[], $11::uuid[]
        ) with ordinality as fresh (
            recorded_at, user_name, org_id, operation, method, path, cluster_id, infra_env_id, host_id, status,
            request_id, position
        )
        order by fresh.position
        returning id",
        &times,
        &text(|record| &record.user_name),
        &text(|record| &record.org_id),
        &text(|record| &record.operation),
        &text(|record| &record.method),
        &text(|record| &record.path),
        &ids(|record| record.cluster_id.map(|id| id.0)) as &[Option<Uuid>],
        &ids(|record| record.infra_env_id.map(|id| id.0)) as &[Option<Uuid>],
        &ids(|record| record.host_id.map(|id| id.0)) as &[Option<Uuid>],
        &statuses,
        &ids(|record| record.request_id) as &[Option<Uuid>]
    );
    Ok(rows.fetch_all(connection).await?)
}

/// Deletes the records of a ring beyond `limit`: always the oldest of the user with the most, so that no user pushes
/// out the records of users with fewer.
pub(crate) async fn trim(
    connection: &mut PgConnection,
    ring: AuditRing,
    limit: i64,
) -> Result<(), Error> {
    sqlx::query!(
        "with ranked as (
            select id, row_number() over (partition by user_name order by id desc) as depth
            from audit_records
            where is_refusal = $1
        )
        delete from audit_records
        where id in (
            select id
            from ranked
            order by depth desc, id
            limit (select greatest(count(*) - $2, 0) from ranked)
        )",
        ring == AuditRing::Refusals,
        limit
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// At most `limit` records with ids above `after`, oldest first.
pub(crate) async fn page(
    connection: &mut PgConnection,
    after: i64,
    limit: i64,
) -> Result<Vec<AuditRecord>, Error> {
    let rows = sqlx::query!(
        "select id, recorded_at, user_name, org_id, operation, method, path, cluster_id, infra_env_id, host_id,
            status, request_id
        from audit_records
        where id > $1
        order by id
        limit $2",
        after,
        limit
    )
    .fetch_all(connection)
    .await?;
    let records = rows.into_iter().map(|row| AuditRecord {
        id: row.id,
        time: row.recorded_at.into(),
        user_name: row.user_name,
        org_id: row.org_id,
        operation: row.operation,
        method: row.method,
        path: row.path,
        cluster_id: row.cluster_id.map(ClusterId),
        infra_env_id: row.infra_env_id.map(InfraEnvId),
        host_id: row.host_id.map(HostId),
        status: row.status.unsigned_abs(),
        request_id: row.request_id,
    });
    Ok(records.collect())
}
