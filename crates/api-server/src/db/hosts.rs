//! Statements about hosts.

use std::collections::HashMap;
use std::fmt;

use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use model::LargeText;
use model::host::{Host, HostStatus};
use model::ids::{ClusterId, HostId, InfraEnvId};
use model::time::Timestamp;
use rules::HostState;
use sealing::{KeySet, SecretTable};
use sqlx::PgConnection;
use uuid::Uuid;

use super::check_ins::ExpiredHeartbeats;
use super::record_page::{self, PagedRow, RecordPage};
use super::{Error, RecordVersion, record};

const TABLE: SecretTable = SecretTable::Hosts;

/// Name of a row, with which its secrets are sealed.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowName {
    pub(super) infra_env: Uuid,
    pub(super) id: Uuid,
}

impl fmt::Display for RowName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.infra_env, self.id)
    }
}

/// A host as stored.
#[derive(Debug, Clone)]
pub(crate) struct HostRow {
    /// The wire record, with the last flushed heartbeat.
    pub(crate) record: Host,
    /// Revision of its cluster at which it changed last.
    pub(crate) revision: i64,
}

impl HostRow {
    /// The host with its parsed texts.
    pub(crate) fn into_state(self) -> HostState {
        let mut host = HostState::new(self.record);
        host.revision = self.revision;
        host
    }
}

/// Columns of a [`HostRow`].
struct HostColumns {
    infra_env_id: Uuid,
    id: Uuid,
    record: String,
    inventory: String,
    connectivity: String,
    validations_info: String,
    free_addresses: String,
    revision: i64,
    checked_in_at: Option<Timestamp>,
    clock_offset_s: Option<i64>,
}

impl HostColumns {
    fn open(self, keys: &KeySet) -> Result<HostRow, Error> {
        let name = RowName {
            infra_env: self.infra_env_id,
            id: self.id,
        };
        let mut record: Host = record::parse(keys, TABLE, name, &self.record)?;
        record.inventory = self.inventory.into();
        record.connectivity = self.connectivity.into();
        record.validations_info = self.validations_info.into();
        record.free_addresses = self.free_addresses.into();
        if let Some(checked_in_at) = self.checked_in_at {
            let now = service::clock::now();
            let offset_s = self.clock_offset_s;
            rules::host::heartbeat::receive_if_newer(&mut record, checked_in_at, offset_s, now);
        }
        Ok(HostRow {
            record,
            revision: self.revision,
        })
    }
}

impl PagedRow for HostColumns {
    type Id = Uuid;

    fn id(&self) -> Uuid {
        self.id
    }

    fn length(&self) -> usize {
        let texts = [
            &self.record,
            &self.inventory,
            &self.connectivity,
            &self.validations_info,
            &self.free_addresses,
        ];
        texts.into_iter().map(String::len).sum()
    }
}

/// The record as JSON, without the texts that have columns of their own.
fn json(keys: &KeySet, host: &Host) -> Result<String, Error> {
    let mut record = host.clone();
    for text in [
        &mut record.inventory,
        &mut record.connectivity,
        &mut record.validations_info,
        &mut record.free_addresses,
    ] {
        text.clear();
    }
    record::print(keys, TABLE, row_name(host.infra_env_id, host.id), &record)
}

fn row_name(infra_env: InfraEnvId, id: HostId) -> RowName {
    RowName {
        infra_env: infra_env.0,
        id: id.0,
    }
}

/// A host by the ids of a request.
pub(crate) type HostKey = (InfraEnvId, HostId);
/// Results of a look-up; hosts of unknown infra-envs have none.
pub(crate) type HostLookups = HashMap<HostKey, HostLookup>;

/// The records that a request of a host depends on: their versions, with which cached ones are compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostLookup {
    /// Version of the infra-env's record.
    pub(crate) infra_env: RecordVersion,
    /// None while the host is not registered.
    pub(crate) binding: Option<HostBinding>,
}

/// The binding of a registered host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostBinding {
    /// The cluster and its revision; none in the pool.
    pub(crate) cluster: Option<(ClusterId, i64)>,
}

/// Looks hosts up.
pub(crate) async fn look_up(
    connection: &mut PgConnection,
    hosts: &[HostKey],
) -> Result<HostLookups, Error> {
    let (infra_envs, ids): (Vec<Uuid>, Vec<Uuid>) = hosts
        .iter()
        .map(|(infra_env, id)| (infra_env.0, id.0))
        .unzip();
    // The limit keeps one look-up by keys for each host: a join may read the whole table instead.
    let rows = sqlx::query!(
        r#"select asked.infra_env_id as "infra_env_id!", asked.id as "id!", found.infra_env_revision, found.updated_at,
            found.is_known as "is_known!", found.cluster_id as "cluster_id?", found.revision as "revision?"
        from unnest($1::uuid[], $2::uuid[]) as asked (infra_env_id, id)
        cross join lateral (
            select infra_envs.revision as infra_env_revision, infra_envs.updated_at,
                hosts.id is not null as is_known, hosts.cluster_id, clusters.revision
            from infra_envs
            left join hosts on hosts.infra_env_id = infra_envs.id and hosts.id = asked.id
            left join clusters on clusters.id = hosts.cluster_id
            where infra_envs.id = asked.infra_env_id
            limit 1
        ) found"#,
        &infra_envs,
        &ids
    )
    .fetch_all(connection)
    .await?;
    let lookups = rows.into_iter().map(|row| {
        let lookup = HostLookup {
            infra_env: RecordVersion {
                revision: row.infra_env_revision,
                updated_at: row.updated_at,
            },
            binding: row.is_known.then(|| HostBinding {
                cluster: row.cluster_id.map(ClusterId).zip(row.revision),
            }),
        };
        ((InfraEnvId(row.infra_env_id), HostId(row.id)), lookup)
    });
    Ok(lookups.collect())
}

/// One host.
pub(crate) async fn find(
    connection: &mut PgConnection,
    keys: &KeySet,
    infra_env: InfraEnvId,
    id: HostId,
) -> Result<Option<HostRow>, Error> {
    let row = sqlx::query_as!(
        HostColumns,
        r#"select hosts.infra_env_id, hosts.id, hosts.record::text as "record!", hosts.inventory,
            hosts.connectivity, hosts.validations_info, hosts.free_addresses, hosts.revision,
            checks.checked_in_at as "checked_in_at?", checks.clock_offset_s as "clock_offset_s?"
        from hosts
        left join host_check_ins checks on checks.infra_env_id = hosts.infra_env_id and checks.host_id = hosts.id
        where hosts.infra_env_id = $1 and hosts.id = $2"#,
        infra_env.0,
        id.0
    );
    let row = row.fetch_optional(connection).await?;
    row.map(|row| row.open(keys)).transpose()
}

/// Some hosts of an infra-env, in the order of their registration.
pub(crate) async fn find_all(
    connection: &mut PgConnection,
    keys: &KeySet,
    infra_env: InfraEnvId,
    ids: &[HostId],
) -> Result<Vec<HostRow>, Error> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    some(connection, infra_env, &ids)
        .map(|row| row?.open(keys))
        .try_collect()
        .await
}

/// Rows of some hosts of an infra-env, in the order of their registration.
fn some<'c>(
    connection: &'c mut PgConnection,
    infra_env: InfraEnvId,
    ids: &'c [Uuid],
) -> impl Stream<Item = Result<HostColumns, sqlx::Error>> + 'c {
    let rows = sqlx::query_as!(
        HostColumns,
        r#"select hosts.infra_env_id, hosts.id, hosts.record::text as "record!", hosts.inventory,
            hosts.connectivity, hosts.validations_info, hosts.free_addresses, hosts.revision,
            checks.checked_in_at as "checked_in_at?", checks.clock_offset_s as "clock_offset_s?"
        from hosts
        left join host_check_ins checks on checks.infra_env_id = hosts.infra_env_id and checks.host_id = hosts.id
        where hosts.infra_env_id = $1 and hosts.id = any($2)
        order by hosts.seq"#,
        infra_env.0,
        ids
    );
    rows.fetch(connection)
}

/// The hosts of a cluster, in the order of their registration. Rows are read one by one: their texts are compressed at
/// once.
pub(crate) async fn of_cluster(
    connection: &mut PgConnection,
    keys: &KeySet,
    cluster: ClusterId,
) -> Result<Vec<HostRow>, Error> {
    let rows = sqlx::query_as!(
        HostColumns,
        r#"select hosts.infra_env_id, hosts.id, hosts.record::text as "record!", hosts.inventory,
            hosts.connectivity, hosts.validations_info, hosts.free_addresses, hosts.revision,
            checks.checked_in_at as "checked_in_at?", checks.clock_offset_s as "clock_offset_s?"
        from hosts
        left join host_check_ins checks on checks.infra_env_id = hosts.infra_env_id and checks.host_id = hosts.id
        where hosts.cluster_id = $1
        order by hosts.seq"#,
        cluster.0
    );
    rows.fetch(connection)
        .map(|row| row?.open(keys))
        .try_collect()
        .await
}

/// The hosts of a cluster that changed after `revision`, in the order of their registration.
pub(crate) async fn changed_since(
    connection: &mut PgConnection,
    keys: &KeySet,
    cluster: ClusterId,
    revision: i64,
) -> Result<Vec<HostRow>, Error> {
    let rows = sqlx::query_as!(
        HostColumns,
        r#"select hosts.infra_env_id, hosts.id, hosts.record::text as "record!", hosts.inventory,
            hosts.connectivity, hosts.validations_info, hosts.free_addresses, hosts.revision,
            checks.checked_in_at as "checked_in_at?", checks.clock_offset_s as "clock_offset_s?"
        from hosts
        left join host_check_ins checks on checks.infra_env_id = hosts.infra_env_id and checks.host_id = hosts.id
        where hosts.cluster_id = $1 and hosts.revision > $2
        order by hosts.seq"#,
        cluster.0,
        revision
    );
    rows.fetch(connection)
        .map(|row| row?.open(keys))
        .try_collect()
        .await
}

/// The hosts of an infra-env, in the order of their registration.
pub(crate) async fn of_infra_env(
    connection: &mut PgConnection,
    keys: &KeySet,
    infra_env: InfraEnvId,
) -> Result<Vec<HostRow>, Error> {
    let rows = sqlx::query_as!(
        HostColumns,
        r#"select hosts.infra_env_id, hosts.id, hosts.record::text as "record!", hosts.inventory,
            hosts.connectivity, hosts.validations_info, hosts.free_addresses, hosts.revision,
            checks.checked_in_at as "checked_in_at?", checks.clock_offset_s as "clock_offset_s?"
        from hosts
        left join host_check_ins checks on checks.infra_env_id = hosts.infra_env_id and checks.host_id = hosts.id
        where hosts.infra_env_id = $1
        order by hosts.seq"#,
        infra_env.0
    );
    rows.fetch(connection)
        .map(|row| row?.open(keys))
        .try_collect()
        .await
}

/// Ids of the hosts of an infra-env, in the order of their registration.
pub(crate) async fn ids(
    connection: &mut PgConnection,
    infra_env: InfraEnvId,
) -> Result<Vec<Uuid>, Error> {
    let ids = sqlx::query_scalar!(
        "select id from hosts where infra_env_id = $1 order by seq",
        infra_env.0
    );
    Ok(ids.fetch_all(connection).await?)
}

/// Some hosts of an infra-env, as many as a page holds; `ids` are in the order of their registration.
pub(crate) async fn page(
    connection: &mut PgConnection,
    keys: &KeySet,
    infra_env: InfraEnvId,
    ids: &[Uuid],
) -> Result<RecordPage<HostRow>, Error> {
    record_page::read(some(connection, infra_env, ids), ids, |row| row.open(keys)).await
}

/// The hosts of an infra-env with one of these statuses.
pub(crate) async fn of_statuses(
    connection: &mut PgConnection,
    keys: &KeySet,
    infra_env: InfraEnvId,
    statuses: &[HostStatus],
) -> Result<Vec<HostRow>, Error> {
    let statuses: Vec<String> = statuses.iter().map(ToString::to_string).collect();
    let rows = sqlx::query_as!(
        HostColumns,
        r#"select hosts.infra_env_id, hosts.id, hosts.record::text as "record!", hosts.inventory,
            hosts.connectivity, hosts.validations_info, hosts.free_addresses, hosts.revision,
            checks.checked_in_at as "checked_in_at?", checks.clock_offset_s as "clock_offset_s?"
        from hosts
        left join host_check_ins checks on checks.infra_env_id = hosts.infra_env_id and checks.host_id = hosts.id
        where hosts.infra_env_id = $1 and hosts.status = any($2)
        order by hosts.seq"#,
        infra_env.0,
        &statuses
    );
    rows.fetch(connection)
        .map(|row| row?.open(keys))
        .try_collect()
        .await
}

/// Hosts of one status in a cluster.
#[derive(Debug, Clone)]
pub(crate) struct StatusCount {
    /// The cluster.
    pub(crate) cluster_id: Uuid,
    /// The status, as stored.
    pub(crate) status: String,
    /// The number of hosts.
    pub(crate) count: i64,
}

/// Number of hosts by cluster and status.
pub(crate) async fn count_by_status(
    connection: &mut PgConnection,
) -> Result<Vec<StatusCount>, Error> {
    Ok(sqlx::query_as!(
        StatusCount,
        r#"select cluster_id as "cluster_id!", status, count(*) as "count!"
        from hosts
        where cluster_id is not null
        group by cluster_id, status"#
    )
    .fetch_all(connection)
    .await?)
}

/// Inserts hosts at a revision of their cluster, in one statement; false if that is more than `limit` hosts of an
/// infra-env: the transaction is to be rolled back then.
pub(crate) async fn insert(
    connection: &mut PgConnection,
    keys: &KeySet,
    hosts: &[&Host],
    revision: i64,
    limit: u32,
    now: Timestamp,
) -> Result<bool, Error> {
    if hosts.is_empty() {
        return Ok(true);
    }
    let columns = HostArrays::of(keys, hosts)?;
    let texts = |member: fn(&Host) -> &LargeText| -> Vec<String> {
        hosts.iter().map(|host| member(host).text()).collect()
    };
    let done = sqlx::query!(
        "with fresh as (
            select *
            from unnest(
                $1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::text[],
                $9::text[], $10::text[], $11::text[], $12::text[]
            ) with ordinality as fresh (
                infra_env_id, id, cluster_id, status, record,
                inventory, connectivity, validations_info, free_addresses, position
            )
        ),
        counted as (
            update infra_envs
            set host_count = host_count + arrived.count
            from (select infra_env_id, count(*)::int as count from fresh group by infra_env_id) as arrived
            where infra_envs.id = arrived.infra_env_id and host_count + arrived.count <= $8
            returning infra_envs.id
        )
        insert into hosts (
            infra_env_id, id, cluster_id, status, record, created_at, updated_at, revision,
            inventory, connectivity, validations_info, free_addresses
        )
        select fresh.infra_env_id, fresh.id, fresh.cluster_id, fresh.status, fresh.record::jsonb, $6, $6, $7,
            fresh.inventory, fresh.connectivity, fresh.validations_info, fresh.free_addresses
        from fresh
        join counted on counted.id = fresh.infra_env_id
        order by fresh.position",
        &columns.infra_envs,
        &columns.ids,
        &columns.clusters as &[Option<Uuid>],
        &columns.statuses,
        &columns.records,
        now,
        revision,
        limit.cast_signed(),
        &texts(|host| &host.inventory),
        &texts(|host| &host.connectivity),
        &texts(|host| &host.validations_info),
        &texts(|host| &host.free_addresses)
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected() == hosts.len() as u64)
}

/// Columns of hosts, as arrays for one statement.
struct HostArrays {
    infra_envs: Vec<Uuid>,
    ids: Vec<Uuid>,
    clusters: Vec<Option<Uuid>>,
    statuses: Vec<String>,
    records: Vec<String>,
}

impl HostArrays {
    fn of(keys: &KeySet, hosts: &[&Host]) -> Result<Self, Error> {
        let clusters = hosts.iter().map(|host| host.cluster_id.map(|id| id.0));
        let statuses = hosts.iter().map(|host| host.status.as_str().to_owned());
        let records = hosts.iter().map(|host| json(keys, host));
        Ok(Self {
            infra_envs: hosts.iter().map(|host| host.infra_env_id.0).collect(),
            ids: hosts.iter().map(|host| host.id.0).collect(),
            clusters: clusters.collect(),
            statuses: statuses.collect(),
            records: records.collect::<Result<_, _>>()?,
        })
    }
}

/// A host to store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangedHost<'a> {
    /// Its record as stored; none if it was not read.
    pub(crate) before: Option<&'a Host>,
    /// Its new record.
    pub(crate) after: &'a Host,
}

impl ChangedHost<'_> {
    /// The new text of a member; none if it is stored already.
    fn text(&self, member: fn(&Host) -> &LargeText) -> Option<String> {
        let new = member(self.after);
        (self.before.map(member) != Some(new)).then(|| new.text())
    }
}

/// Stores changed hosts at a revision of their cluster, in one statement. Texts without changes stay as they are stored.
pub(crate) async fn save(
    connection: &mut PgConnection,
    keys: &KeySet,
    hosts: &[ChangedHost<'_>],
    revision: i64,
    now: Timestamp,
) -> Result<(), Error> {
    if hosts.is_empty() {
        return Ok(());
    }
    let records: Vec<&Host> = hosts.iter().map(|host| host.after).collect();
    let columns = HostArrays::of(keys, &records)?;
    let texts = |member: fn(&Host) -> &LargeText| -> Vec<Option<String>> {
        hosts.iter().map(|host| host.text(member)).collect()
    };
    sqlx::query!(
        "update hosts
        set cluster_id = changed.cluster_id,
            status = changed.status,
            record = changed.record::jsonb,
            updated_at = $6,
            revision = $7,
            inventory = coalesce(changed.inventory, hosts.inventory),
            connectivity = coalesce(changed.connectivity, hosts.connectivity),
            validations_info = coalesce(changed.validations_info, hosts.validations_info),
            free_addresses = coalesce(changed.free_addresses, hosts.free_addresses)
        from unnest(
            $1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::text[],
            $8::text[], $9::text[], $10::text[], $11::text[]
        )
            as changed (
                infra_env_id, id, cluster_id, status, record,
                inventory, connectivity, validations_info, free_addresses
            )
        where hosts.infra_env_id = changed.infra_env_id and hosts.id = changed.id",
        &columns.infra_envs,
        &columns.ids,
        &columns.clusters as &[Option<Uuid>],
        &columns.statuses,
        &columns.records,
        now,
        revision,
        &texts(|host| &host.inventory) as &[Option<String>],
        &texts(|host| &host.connectivity) as &[Option<String>],
        &texts(|host| &host.validations_info) as &[Option<String>],
        &texts(|host| &host.free_addresses) as &[Option<String>]
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes a host.
pub(crate) async fn delete(
    connection: &mut PgConnection,
    infra_env: InfraEnvId,
    id: HostId,
) -> Result<(), Error> {
    sqlx::query!(
        "with gone as (delete from hosts where infra_env_id = $1 and id = $2 returning infra_env_id)
        update infra_envs set host_count = host_count - 1 from gone where infra_envs.id = gone.infra_env_id",
        infra_env.0,
        id.0
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Secrets for an ignition endpoint, stored outside the host's record.
#[derive(Debug, Clone, Default)]
pub(crate) struct EndpointSecrets {
    /// Bearer token.
    pub(crate) token: Option<String>,
    /// JSON text of the extra headers.
    pub(crate) headers: Option<String>,
}

/// Replaces the secrets that are set.
pub(crate) async fn set_endpoint_secrets(
    connection: &mut PgConnection,
    keys: &KeySet,
    infra_env: InfraEnvId,
    id: HostId,
    secrets: &EndpointSecrets,
) -> Result<(), Error> {
    let sealed = |column: &str, text: Option<&str>| {
        let place = TABLE.place(column, row_name(infra_env, id));
        text.map(|text| keys.seal_text(&place, text)).transpose()
    };
    sqlx::query!(
        "update hosts
        set ignition_endpoint_token = coalesce($3, ignition_endpoint_token),
            ignition_endpoint_http_headers = coalesce($4, ignition_endpoint_http_headers)
        where infra_env_id = $1 and id = $2",
        infra_env.0,
        id.0,
        sealed("ignition_endpoint_token", secrets.token.as_deref())?,
        sealed("ignition_endpoint_http_headers", secrets.headers.as_deref())?
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Pool hosts whose last heartbeat is expired, and those that are reclaimed: they have a timeout.
pub(crate) async fn pool_to_monitor(
    connection: &mut PgConnection,
    expired: ExpiredHeartbeats,
    limit: i64,
) -> Result<Vec<(InfraEnvId, HostId)>, Error> {
    let rows = sqlx::query!(
        "select hosts.infra_env_id, hosts.id
        from hosts
        join host_check_ins checks on checks.infra_env_id = hosts.infra_env_id and checks.host_id = hosts.id
        where hosts.cluster_id is null
            and (
                hosts.status in ('reclaiming', 'reclaiming-rebooting')
                or hosts.status in ('discovering-unbound', 'known-unbound', 'insufficient-unbound')
                    and (checks.checked_in_at < $1 or checks.checked_in_at > $2::timestamptz)
            )
        limit $3",
        expired.before,
        expired.after,
        limit
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| (InfraEnvId(row.infra_env_id), HostId(row.id)))
        .collect())
}

/// The secrets of a host's ignition endpoint.
pub(crate) async fn endpoint_secrets(
    connection: &mut PgConnection,
    keys: &KeySet,
    infra_env: InfraEnvId,
    id: HostId,
) -> Result<EndpointSecrets, Error> {
    let row = sqlx::query_as!(
        EndpointSecrets,
        "select ignition_endpoint_token as token, ignition_endpoint_http_headers as headers
        from hosts
        where infra_env_id = $1 and id = $2",
        infra_env.0,
        id.0
    )
    .fetch_optional(connection)
    .await?;
    let stored = row.unwrap_or_default();
    let opened = |column: &str, text: Option<String>| {
        let place = TABLE.place(column, row_name(infra_env, id));
        text.map(|text| keys.open_text(&place, text)).transpose()
    };
    Ok(EndpointSecrets {
        token: opened("ignition_endpoint_token", stored.token)?,
        headers: opened("ignition_endpoint_http_headers", stored.headers)?,
    })
}

/// Infra-envs with unbound hosts, in the order of their ids, after one of them.
pub(crate) async fn pools_after(
    connection: &mut PgConnection,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<InfraEnvId>, Error> {
    let ids = sqlx::query_scalar!(
        "select distinct infra_env_id
        from hosts
        where cluster_id is null and ($1::uuid is null or infra_env_id > $1)
        order by infra_env_id
        limit $2",
        after,
        limit
    )
    .fetch_all(connection)
    .await?;
    Ok(ids.into_iter().map(InfraEnvId).collect())
}
