//! Statements about the lists of expected hosts.

use model::expected_hosts::ExpectedHost;
use model::ids::InfraEnvId;
use model::time::Timestamp;
use sqlx::PgConnection;

use super::Error;

fn error(infra_env: InfraEnvId, source: serde_json::Error) -> Error {
    Error::Record {
        what: format!("expected hosts of infra-env {infra_env}"),
        source,
    }
}

/// The list of an infra-env; none without one.
pub(crate) async fn find(
    connection: &mut PgConnection,
    infra_env: InfraEnvId,
) -> Result<Option<Vec<ExpectedHost>>, Error> {
    let hosts = sqlx::query_scalar!(
        "select hosts from infra_env_expected_hosts where infra_env_id = $1",
        infra_env.0
    )
    .fetch_optional(connection)
    .await?;
    hosts
        .map(|hosts| serde_json::from_value(hosts).map_err(|source| error(infra_env, source)))
        .transpose()
}

/// Replaces the list of an infra-env.
pub(crate) async fn set(
    connection: &mut PgConnection,
    infra_env: InfraEnvId,
    hosts: &[ExpectedHost],
    now: Timestamp,
) -> Result<(), Error> {
    let hosts = serde_json::to_value(hosts).map_err(|source| error(infra_env, source))?;
    sqlx::query!(
        "insert into infra_env_expected_hosts (infra_env_id, hosts, updated_at)
        values ($1, $2, $3)
        on conflict (infra_env_id) do update set hosts = excluded.hosts, updated_at = excluded.updated_at",
        infra_env.0,
        hosts,
        now
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes the list of an infra-env; false without one.
pub(crate) async fn delete(
    connection: &mut PgConnection,
    infra_env: InfraEnvId,
) -> Result<bool, Error> {
    let done = sqlx::query!(
        "delete from infra_env_expected_hosts where infra_env_id = $1",
        infra_env.0
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected() == 1)
}
