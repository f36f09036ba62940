//! Advisory locks: whoever changes a cluster, or a host of the pool, holds its lock.

use sqlx::PgConnection;
use uuid::Uuid;

/// Set apart from the locks of other programs in the same database.
const PREPARATION_SALT: u64 = 0x7072_6570_6172_6521;

/// Waits for the lock on `id`; the end of the transaction frees it.
pub(crate) async fn lock(connection: &mut PgConnection, id: Uuid) -> Result<(), sqlx::Error> {
    sqlx::query_scalar!("select pg_advisory_xact_lock($1)", key(id))
        .fetch_one(connection)
        .await
        .map(drop)
}

/// Takes the lock on `id` if nobody holds it; the end of the transaction frees it.
pub(crate) async fn try_lock(connection: &mut PgConnection, id: Uuid) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"select pg_try_advisory_xact_lock($1) as "held!""#,
        key(id)
    )
    .fetch_one(connection)
    .await
}

/// Takes the right to prepare the installation of cluster `id`; the end of the connection frees it, however it ends.
pub(crate) async fn try_lock_preparation(
    connection: &mut PgConnection,
    id: Uuid,
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"select pg_try_advisory_lock($1) as "held!""#,
        preparation_key(id)
    )
    .fetch_one(connection)
    .await
}

/// Two ids that fall on one key wait for each other, no more.
fn key(id: Uuid) -> i64 {
    let (high, low) = id.as_u64_pair();
    (high ^ low).cast_signed()
}

fn preparation_key(id: Uuid) -> i64 {
    let (high, low) = id.as_u64_pair();
    (high ^ low ^ PREPARATION_SALT).cast_signed()
}
