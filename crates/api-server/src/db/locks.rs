//! Advisory locks of PostgreSQL: a change of a cluster or pool host holds its lock.

use sqlx::PgConnection;
use uuid::Uuid;

use super::jobs::JobRunner;

/// Key of registrations.
const REGISTRATION_KEY: i64 = 0x7265_6769_7374_6572;

/// Separates preparation locks from cluster locks of the same id.
const PREPARATION_SALT: u64 = 0x7072_6570_6172_6521;

/// Separates locks of holders of BMC credentials from cluster locks of the same id.
const BMC_BOOT_SALT: u64 = 0x626d_6362_6f6f_7421;

/// Key of the first runner of jobs.
const JOBS_KEY: i64 = 0x6a6f_6273_6a6f_6273;

/// Key of the reader of the registry's content.
const REGISTRY_CONTENT_KEY: i64 = 0x636f_6e74_656e_7473;

/// Waits for the locks on `ids`; the end of the transaction releases them.
pub(crate) async fn lock(connection: &mut PgConnection, ids: &[Uuid]) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "select pg_advisory_xact_lock(key) from unnest($1::bigint[]) as key",
        &keys(ids)
    )
    .execute(connection)
    .await
    .map(drop)
}

/// Waits for the lock of registrations, so that their counts include each other; the end of the transaction releases it.
pub(crate) async fn lock_registrations(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query!("select pg_advisory_xact_lock($1)", REGISTRATION_KEY)
        .execute(connection)
        .await
        .map(drop)
}

/// Takes the locks on `ids` if all are free; the end of the transaction releases them.
pub(crate) async fn try_lock(
    connection: &mut PgConnection,
    ids: &[Uuid],
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"select coalesce(bool_and(pg_try_advisory_xact_lock(key)), true) as "held!"
        from unnest($1::bigint[]) as key"#,
        &keys(ids)
    )
    .fetch_one(connection)
    .await
}

/// Takes the preparation lock of cluster `id` if it is free; the end of the session releases it, also after a crash.
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

/// Takes the lock of a runner of jobs if it is free; the end of the session releases it, also after a crash.
pub(crate) async fn try_lock_jobs(
    connection: &mut PgConnection,
    runner: JobRunner,
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"select pg_try_advisory_lock($1) as "held!""#,
        JOBS_KEY + runner as i64
    )
    .fetch_one(connection)
    .await
}

/// Takes the lock of the reader of the registry's content if it is free; the end of the session releases it, also after
/// a crash.
pub(crate) async fn try_lock_registry_content(
    connection: &mut PgConnection,
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"select pg_try_advisory_lock($1) as "held!""#,
        REGISTRY_CONTENT_KEY
    )
    .fetch_one(connection)
    .await
}

/// Takes the lock of a holder of BMC credentials, if it is free; the end of the session releases it, also after a crash.
pub(crate) async fn try_lock_bmc_boot_holder(
    connection: &mut PgConnection,
    holder: Uuid,
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"select pg_try_advisory_lock($1) as "held!""#,
        bmc_boot_key(holder)
    )
    .fetch_one(connection)
    .await
}

/// Whether the lock of a holder is free, so that its session has ended. It cannot take it until the end of the transaction.
pub(crate) async fn is_bmc_boot_holder_missing(
    connection: &mut PgConnection,
    holder: Uuid,
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"select pg_try_advisory_xact_lock($1) as "held!""#,
        bmc_boot_key(holder)
    )
    .fetch_one(connection)
    .await
}

/// Keys of ids, sorted: the same order everywhere prevents deadlocks.
fn keys(ids: &[Uuid]) -> Vec<i64> {
    let mut keys: Vec<i64> = ids.iter().copied().map(key).collect();
    keys.sort_unstable();
    keys
}

/// Key of an id. Ids that collide share one lock, which only costs waiting.
fn key(id: Uuid) -> i64 {
    let (high, low) = id.as_u64_pair();
    (high ^ low).cast_signed()
}

fn preparation_key(id: Uuid) -> i64 {
    let (high, low) = id.as_u64_pair();
    (high ^ low ^ PREPARATION_SALT).cast_signed()
}

fn bmc_boot_key(holder: Uuid) -> i64 {
    let (high, low) = holder.as_u64_pair();
    (high ^ low ^ BMC_BOOT_SALT).cast_signed()
}
