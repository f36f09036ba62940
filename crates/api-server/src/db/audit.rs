//! Statements about audit records.

use model::audit::AuditRecord;
use model::ids::{ClusterId, HostId, InfraEnvId};
use sqlx::PgConnection;

use super::Error;

/// Records are trimmed once per so many insertions.
const TRIM_EVERY: i64 = 64;

/// Appends a record, whose id the table assigns; the oldest beyond `limit` are deleted.
pub(crate) async fn insert(
    connection: &mut PgConnection,
    record: &AuditRecord,
    limit: i64,
) -> Result<(), Error> {
    let id = sqlx::query_scalar!(
        "insert into audit_records (
            recorded_at, user_name, org_id, operation, method, path, cluster_id, infra_env_id, host_id, status,
            request_id
        )
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
        returning id",
        record.time.0.unwrap_or_default(),
        record.user_name,
        record.org_id,
        record.operation,
        record.method,
        record.path,
        record.cluster_id.map(|id| id.0),
        record.infra_env_id.map(|id| id.0),
        record.host_id.map(|id| id.0),
        i16::try_from(record.status).unwrap_or_default(),
        record.request_id
    )
    .fetch_one(&mut *connection)
    .await?;
    if id % TRIM_EVERY == 0 {
        sqlx::query!("delete from audit_records where id <= $1", id - limit)
            .execute(connection)
            .await?;
    }
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
