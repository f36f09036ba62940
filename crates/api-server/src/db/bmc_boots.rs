//! Statements about boots of hosts by their BMCs.

use model::bmc_boot::{BmcBootHost, BmcBootState};
use model::ids::InfraEnvId;
use model::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Error, locks};

/// A request to boot hosts, without credentials.
#[derive(Debug, Clone)]
pub(crate) struct NewBmcBoots {
    pub(crate) infra_env: InfraEnvId,
    pub(crate) request: Uuid,
    /// Session lock of this server.
    pub(crate) holder: Uuid,
    /// Name of the user.
    pub(crate) requested_by: String,
    pub(crate) names: Vec<String>,
    /// Addresses as they were given, in the order of the names.
    pub(crate) addresses: Vec<String>,
    /// Equal for all spellings of an address, in the order of the names.
    pub(crate) systems: Vec<String>,
}

/// The progress of one host.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BmcBootChange {
    pub(crate) request: Uuid,
    pub(crate) name: String,
    pub(crate) state: BmcBootState,
    pub(crate) step: String,
    pub(crate) error: String,
    pub(crate) warning: String,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) ended_at: Option<Timestamp>,
}

/// Excludes other requests until the end of the transaction, so that bounds hold.
pub(crate) async fn lock(connection: &mut PgConnection) -> Result<(), Error> {
    sqlx::query!("lock table bmc_boots in share row exclusive mode")
        .execute(connection)
        .await?;
    Ok(())
}

/// The name of a host of this request that is under way, and whether that is in another infra-env.
pub(crate) async fn conflicting(
    connection: &mut PgConnection,
    new: &NewBmcBoots,
) -> Result<Option<(String, bool)>, Error> {
    let row = sqlx::query!(
        r#"select name, infra_env_id <> $1 as "is_other!"
        from bmc_boots
        where ended_at is null
            and (system = any($2) or infra_env_id = $1 and name = any($3))
        order by 2, 1
        limit 1"#,
        new.infra_env.0,
        &new.systems,
        &new.names
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| (row.name, row.is_other)))
}

/// Number of hosts that are under way, of all infra-envs.
pub(crate) async fn count_under_way(connection: &mut PgConnection) -> Result<i64, Error> {
    let count =
        sqlx::query_scalar!(r#"select count(*) as "count!" from bmc_boots where ended_at is null"#);
    Ok(count.fetch_one(connection).await?)
}

/// Adds the waiting hosts of a request in place of ended boots of the same hosts, and keeps the newest `kept` others.
pub(crate) async fn insert(
    connection: &mut PgConnection,
    new: &NewBmcBoots,
    kept: i64,
    now: Timestamp,
) -> Result<(), Error> {
    sqlx::query!(
        "delete from bmc_boots
        where infra_env_id = $1 and ended_at is not null
            and (name = any($2) or system = any($3) or name not in (
                select name
                from bmc_boots
                where infra_env_id = $1 and ended_at is not null and name <> all($2) and system <> all($3)
                order by requested_at desc, name
                limit $4
            ))",
        new.infra_env.0,
        &new.names,
        &new.systems,
        kept
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "insert into bmc_boots
            (infra_env_id, name, address, system, state, request_id, holder, requested_by, requested_at)
        select $1, new.name, new.address, new.system, 'waiting', $5, $6, $7, $8
        from unnest($2::text[], $3::text[], $4::text[]) as new(name, address, system)",
        new.infra_env.0,
        &new.names,
        &new.addresses,
        &new.systems,
        new.request,
        new.holder,
        new.requested_by,
        now
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The last boot of each host of an infra-env, by name.
pub(crate) async fn list(
    connection: &mut PgConnection,
    infra_env: InfraEnvId,
) -> Result<Vec<BmcBootHost>, Error> {
    let rows = sqlx::query!(
        "select name, address, state, step, error, warning, requested_by, requested_at, started_at, ended_at
        from bmc_boots
        where infra_env_id = $1
        order by name",
        infra_env.0
    )
    .fetch_all(connection)
    .await?;
    let hosts = rows.into_iter().map(|row| BmcBootHost {
        name: row.name,
        address: row.address,
        state: row.state.parse().unwrap_or_default(),
        step: row.step,
        error: row.error,
        warning: row.warning,
        requested_by: row.requested_by,
        requested_at: row.requested_at.into(),
        started_at: row.started_at.into(),
        ended_at: row.ended_at.into(),
    });
    Ok(hosts.collect())
}

/// Records progress. An ended boot stays as it is: its server was taken for dead meanwhile.
pub(crate) async fn report(
    connection: &mut PgConnection,
    changes: &[BmcBootChange],
) -> Result<(), Error> {
    let texts = |text: fn(&BmcBootChange) -> &str| -> Vec<String> {
        changes.iter().map(|one| text(one).to_owned()).collect()
    };
    let requests: Vec<Uuid> = changes.iter().map(|one| one.request).collect();
    let started: Vec<_> = changes.iter().map(|one| one.started_at).collect();
    let ended: Vec<_> = changes.iter().map(|one| one.ended_at).collect();
    sqlx::query!(
        "update bmc_boots
        set state = new.state, step = new.step, error = new.error, warning = new.warning,
            started_at = coalesce(bmc_boots.started_at, new.started_at), ended_at = new.ended_at
        from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[],
                $7::timestamptz[], $8::timestamptz[])
            as new(request_id, name, state, step, error, warning, started_at, ended_at)
        where bmc_boots.request_id = new.request_id and bmc_boots.name = new.name
            and bmc_boots.ended_at is null",
        &requests,
        &texts(|one| &one.name),
        &texts(|one| one.state.as_str()),
        &texts(|one| &one.step),
        &texts(|one| &one.error),
        &texts(|one| &one.warning),
        &started as &[Option<Timestamp>],
        &ended as &[Option<Timestamp>]
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Requests the cancellation of the hosts of an infra-env that are under way.
pub(crate) async fn cancel(
    connection: &mut PgConnection,
    infra_env: InfraEnvId,
) -> Result<(), Error> {
    sqlx::query!(
        "update bmc_boots
        set cancel_requested = true
        where infra_env_id = $1 and ended_at is null",
        infra_env.0
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Requests of a holder that are under way, and whether they are to be cancelled.
pub(crate) async fn under_way(
    connection: &mut PgConnection,
    holder: Uuid,
) -> Result<Vec<(Uuid, bool)>, Error> {
    let rows = sqlx::query!(
        r#"select request_id, bool_or(cancel_requested) as "is_cancelled!"
        from bmc_boots
        where holder = $1 and ended_at is null
        group by request_id"#,
        holder
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.request_id, row.is_cancelled))
        .collect())
}

/// Fails the hosts of requests that are under way.
pub(crate) async fn fail(
    connection: &mut PgConnection,
    requests: &[Uuid],
    reason: &str,
    now: Timestamp,
) -> Result<(), Error> {
    sqlx::query!(
        "update bmc_boots
        set state = 'failed', step = '', error = $2, ended_at = $3
        where request_id = any($1) and ended_at is null",
        requests,
        reason,
        now
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Holders of boots that are under way without their lock. In one transaction with the decision about them.
pub(crate) async fn missing_holders(connection: &mut PgConnection) -> Result<Vec<Uuid>, Error> {
    let holders =
        sqlx::query_scalar!("select distinct holder from bmc_boots where ended_at is null");
    let mut missing = Vec::new();
    for holder in holders.fetch_all(&mut *connection).await? {
        if locks::is_bmc_boot_holder_missing(connection, holder).await? {
            missing.push(holder);
        }
    }
    Ok(missing)
}

/// Fails the hosts of holders that are under way; returns their number. The reasons are those of hosts that have not
/// booted, and of those that have.
pub(crate) async fn fail_of_holders(
    connection: &mut PgConnection,
    holders: &[Uuid],
    [reason, reason_of_booted]: [&str; 2],
    now: Timestamp,
) -> Result<u64, Error> {
    let failed = sqlx::query!(
        "update bmc_boots
        set state = 'failed', step = '', error = case state when 'installing' then $3 else $2 end, ended_at = $4
        where holder = any($1) and ended_at is null",
        holders,
        reason,
        reason_of_booted,
        now
    );
    Ok(failed.execute(connection).await?.rows_affected())
}
