//! Statements about used codes of log-in links.

use model::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::Error;

/// Records the use of a code, and forgets those that have expired; false if it was used before.
pub(crate) async fn record_use(
    connection: &mut PgConnection,
    id: Uuid,
    expires_at: Timestamp,
    now: Timestamp,
) -> Result<bool, Error> {
    let done = sqlx::query!(
        "with expired as (delete from used_log_in_codes where expires_at < $3)
        insert into used_log_in_codes (id, expires_at)
        values ($1, $2)
        on conflict (id) do nothing",
        id,
        expires_at,
        now
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected() == 1)
}
