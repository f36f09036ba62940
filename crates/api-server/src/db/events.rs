//! Statements about events.

use futures_util::StreamExt as _;
use model::events::{Event, EventCategory, EventSeverity};
use model::ids::{ClusterId, HostId, InfraEnvId};
use model::time::Timestamp;
use rules::explain::FailureTimes;
use sqlx::{PgConnection, Postgres, QueryBuilder, Row};
use uuid::Uuid;

use super::Error;
use super::record_page::{self, PagedRow, RecordPage};

/// Columns of [`event`].
macro_rules! columns {
    () => {
        "cluster_id, infra_env_id, host_id, name, severity, category, message, event_time, request_id, props"
    };
}

/// Events are trimmed once per so many insertions: exceeding a limit by a few costs less than counting each time.
const TRIM_EVERY: i64 = 64;

/// The same for the events of an owner, at most: finding the oldest beyond the share reads as many entries of an index.
const MAX_TRIM_EVERY_OF_OWNER: i64 = 4096;

/// Bounds of the stored events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventLimits {
    /// Events of one cluster, or of one infra-env without cluster.
    pub(crate) per_cluster: i64,
    /// Events of the clusters and infra-envs of one owner.
    pub(crate) per_owner: i64,
    /// All events.
    pub(crate) total: i64,
}

/// Inserts events in order, except those beyond their rate limit; the oldest beyond the limits are deleted.
pub(crate) async fn insert(
    connection: &mut PgConnection,
    events: &[Event],
    limits: EventLimits,
    now: Timestamp,
) -> Result<(), Error> {
    if events.is_empty() {
        return Ok(());
    }
    let events = &within_rate_limits(connection, events, now).await?;
    let added = add(connection, events, now).await?;
    let of_owner_every = (limits.per_owner / TRIM_EVERY).clamp(TRIM_EVERY, MAX_TRIM_EVERY_OF_OWNER);
    for (event, (id, owner)) in events.iter().zip(&added) {
        if id % TRIM_EVERY == 0 {
            trim(connection, event, limits).await?;
        }
        if let Some(owner) = owner
            && id % of_owner_every == 0
        {
            trim_of_owner(connection, owner, limits.per_owner).await?;
        }
    }
    Ok(())
}

/// The events except those that follow one of their host and name too soon.
async fn within_rate_limits<'a>(
    connection: &mut PgConnection,
    events: &'a [Event],
    now: Timestamp,
) -> Result<Vec<&'a Event>, Error> {
    let mut kept = Vec::with_capacity(events.len());
    for event in events {
        let limited = rules::event::rate_limit(&event.name).zip(event.host_id);
        if let Some((limit, host)) = limited
            && is_recorded(connection, host, event, now - limit).await?
        {
            continue;
        }
        kept.push(event);
    }
    Ok(kept)
}

/// Whether the host, of the same infra-env and cluster, has an event of that name since `after`.
async fn is_recorded(
    connection: &mut PgConnection,
    host: HostId,
    event: &Event,
    after: Timestamp,
) -> Result<bool, Error> {
    let found = sqlx::query_scalar!(
        r#"select exists (
            select from events
            where host_id = $1
                and name = $2
                and event_time > $3
                and infra_env_id is not distinct from $4
                and cluster_id is not distinct from $5
        ) as "found!""#,
        host.0,
        event.name,
        after,
        event.infra_env_id.map(|id| id.0),
        event.cluster_id.map(|id| id.0)
    );
    Ok(found.fetch_one(connection).await?)
}

/// Deletes the oldest events beyond the limits, among those of the cluster or infra-env of `event`.
async fn trim(
    connection: &mut PgConnection,
    event: &Event,
    limits: EventLimits,
) -> Result<(), Error> {
    if let Some(id) = event.cluster_id {
        sqlx::query!(
            "delete from events
            where cluster_id = $1
                and (event_time, id) <= (
                    select event_time, id
                    from events
                    where cluster_id = $1
                    order by event_time desc, id desc
                    offset $2
                    limit 1
                )",
            id.0,
            limits.per_cluster
        )
        .execute(&mut *connection)
        .await?;
    } else if let Some(id) = event.infra_env_id {
        sqlx::query!(
            "delete from events
            where infra_env_id = $1
                and cluster_id is null
                and (event_time, id) <= (
                    select event_time, id
                    from events
                    where infra_env_id = $1 and cluster_id is null
                    order by event_time desc, id desc
                    offset $2
                    limit 1
                )",
            id.0,
            limits.per_cluster
        )
        .execute(&mut *connection)
        .await?;
    }
    // Ids ascend, so the oldest are found without counting.
    sqlx::query!(
        "delete from events where id <= (select max(id) from events) - $1::bigint",
        limits.total
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Deletes the oldest events of an owner beyond its share.
async fn trim_of_owner(
    connection: &mut PgConnection,
    owner: &str,
    share: i64,
) -> Result<(), Error> {
    sqlx::query!(
        "delete from events
        where owner = $1
            and id <= (select id from events where owner = $1 order by id desc offset $2 limit 1)",
        owner,
        share
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Adds events, whose owner is that of their cluster, else of their infra-env; returns ids and owners.
async fn add(
    connection: &mut PgConnection,
    events: &[&Event],
    now: Timestamp,
) -> Result<Vec<(i64, Option<String>)>, Error> {
    let clusters: Vec<Option<Uuid>> = events
        .iter()
        .map(|event| event.cluster_id.map(|id| id.0))
        .collect();
    let infra_envs: Vec<Option<Uuid>> = events
        .iter()
        .map(|event| event.infra_env_id.map(|id| id.0))
        .collect();
    let hosts: Vec<Option<Uuid>> = events
        .iter()
        .map(|event| event.host_id.map(|id| id.0))
        .collect();
    let names: Vec<String> = events.iter().map(|event| event.name.clone()).collect();
    let severities: Vec<String> = events
        .iter()
        .map(|event| event.severity.as_str().to_owned())
        .collect();
    let categories: Vec<String> = events
        .iter()
        .map(|event| event.category.unwrap_or_default().as_str().to_owned())
        .collect();
    let messages: Vec<String> = events.iter().map(|event| event.message.clone()).collect();
    let requests: Vec<Option<Uuid>> = events.iter().map(|event| event.request_id).collect();
    let props: Vec<String> = events.iter().map(|event| event.props.clone()).collect();
    let rows = sqlx::query!(
        "insert into events (
            cluster_id, infra_env_id, host_id, name, severity, category, message, request_id, props, event_time, owner
        )
        select fresh.cluster_id, fresh.infra_env_id, fresh.host_id, fresh.name, fresh.severity, fresh.category,
            fresh.message, fresh.request_id, fresh.props, $10,
            coalesce(
                (select nullif(owner, '') from clusters where id = fresh.cluster_id),
                (select nullif(owner, '') from infra_envs where id = fresh.infra_env_id)
            )
        from unnest(
            $1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::uuid[], $9::text[]
        ) with ordinality as fresh (
            cluster_id, infra_env_id, host_id, name, severity, category, message, request_id, props, position
        )
        order by fresh.position
        returning id, owner, pg_notify('atoll_events', '')::text as notified",
        &clusters as &[Option<Uuid>],
        &infra_envs as &[Option<Uuid>],
        &hosts as &[Option<Uuid>],
        &names,
        &severities,
        &categories,
        &messages,
        &requests as &[Option<Uuid>],
        &props,
        now
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|row| (row.id, row.owner)).collect())
}

/// The highest id; 0 without events.
pub(crate) async fn newest(connection: &mut PgConnection) -> Result<i64, Error> {
    let id = sqlx::query_scalar!(r#"select coalesce(max(id), 0) as "id!" from events"#);
    Ok(id.fetch_one(connection).await?)
}

/// Running transactions at the time of a query. Units: transaction ids.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunningTransactions {
    /// All lower ones have ended.
    pub(crate) oldest: i64,
    /// Not given to a transaction yet.
    pub(crate) next: i64,
}

/// At most `limit` events with ids above `settled` but those of `known`, in the order of ids, and the transactions that
/// run at that moment.
pub(crate) async fn after(
    connection: &mut PgConnection,
    settled: i64,
    known: &[i64],
    limit: i64,
) -> Result<(Vec<(i64, Event)>, RunningTransactions), Error> {
    // One statement: events and transactions are of the same moment, also when there is no event.
    let rows = sqlx::query(concat!(
        "select pg_snapshot_xmin(moment)::text::bigint as oldest, pg_snapshot_xmax(moment)::text::bigint as next, \
         id, ",
        columns!(),
        " from pg_current_snapshot() as moment left join \
         (select * from events where id > $1 and id <> all($2) order by id limit $3) as events on true order by id"
    ))
    .bind(settled)
    .bind(known)
    .bind(limit)
    .fetch_all(connection)
    .await?;
    let mut running = RunningTransactions::default();
    let mut found = Vec::new();
    for row in &rows {
        running = RunningTransactions {
            oldest: row.try_get("oldest")?,
            next: row.try_get("next")?,
        };
        if let Some(id) = row.try_get::<Option<i64>, _>("id")? {
            found.push((id, event(row)?));
        }
    }
    Ok((found, running))
}

/// At most `limit` matching events with ids above `last`: up to `settled`, and those of `above`; in the order of ids.
pub(crate) async fn replay(
    connection: &mut PgConnection,
    filter: &EventFilter,
    last: i64,
    settled: i64,
    above: &[i64],
    limit: i64,
) -> Result<Vec<(i64, Event)>, Error> {
    let mut query =
        QueryBuilder::<Postgres>::new(concat!("select id, ", columns!(), " from events where "));
    push_filter(&mut query, filter);
    push_severities(&mut query, filter);
    query.push(" and id > ").push_bind(last);
    query.push(" and (id <= ").push_bind(settled);
    query.push(" or id = any(").push_bind(above).push("))");
    query.push(" order by id limit ").push_bind(limit);
    let rows = query.build().fetch_all(connection).await?;
    let events = rows.iter().map(|row| Ok((row.try_get("id")?, event(row)?)));
    Ok(events.collect::<Result<_, sqlx::Error>>()?)
}

/// Filter of a listing or stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct EventFilter {
    /// Cluster.
    pub(crate) cluster_id: Option<Uuid>,
    /// Hosts.
    pub(crate) host_ids: Vec<Uuid>,
    /// Infra-env.
    pub(crate) infra_env_id: Option<Uuid>,
    /// Categories.
    pub(crate) categories: Vec<EventCategory>,
    /// Severities; empty: all.
    pub(crate) severities: Vec<EventSeverity>,
    /// Substring of the message, case-insensitive.
    pub(crate) message: Option<String>,
    /// Include events of deleted hosts.
    pub(crate) deleted_hosts: bool,
    /// Include events without a host.
    pub(crate) cluster_level: bool,
    /// Newest first.
    pub(crate) descending: bool,
    /// Page size.
    pub(crate) limit: Option<i64>,
    /// Events skipped before the page.
    pub(crate) offset: i64,
}

impl EventFilter {
    /// Whether an event of a stream matches; streams have no filter about messages and deleted hosts.
    pub(crate) fn matches(&self, event: &Event) -> bool {
        let is_in = |own: Option<Uuid>, id: Option<Uuid>| own.is_none_or(|own| id == Some(own));
        let host = event.host_id.map(|id| id.0);
        is_in(self.cluster_id, event.cluster_id.map(|id| id.0))
            && is_in(self.infra_env_id, event.infra_env_id.map(|id| id.0))
            && (self.host_ids.is_empty() || host.is_some_and(|id| self.host_ids.contains(&id)))
            && self
                .categories
                .contains(&event.category.unwrap_or_default())
            && (self.severities.is_empty() || self.severities.contains(&event.severity))
    }
}

/// Counts of matching events: by severity without the severity filter, and with it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EventCounts {
    /// In the order of [`EventSeverity::ALL`].
    pub(crate) by_severity: [i64; 4],
    /// With the severity filter.
    pub(crate) chosen: i64,
}

/// Ids of the events, in their order, and their counts.
pub(crate) async fn list(
    connection: &mut PgConnection,
    filter: &EventFilter,
) -> Result<(Vec<i64>, EventCounts), Error> {
    let counts = count(connection, filter).await?;
    let mut query = QueryBuilder::<Postgres>::new("select id from events where ");
    push_filter(&mut query, filter);
    push_severities(&mut query, filter);
    query.push(if filter.descending {
        " order by event_time desc, id desc"
    } else {
        " order by event_time, id"
    });
    query
        .push(" limit ")
        .push_bind(filter.limit)
        .push(" offset ")
        .push_bind(filter.offset);
    let ids = query.build_query_scalar().fetch_all(connection).await?;
    Ok((ids, counts))
}

/// Some events, as many as a page holds, in the order of `ids`.
pub(crate) async fn page(
    connection: &mut PgConnection,
    ids: &[i64],
) -> Result<RecordPage<Event>, Error> {
    let query = sqlx::query(concat!(
        "select events.id as id, ",
        columns!(),
        " from unnest($1::bigint[]) with ordinality as asked (event, position) \
         join events on events.id = asked.event order by asked.position"
    ));
    let rows = query.bind(ids).fetch(connection);
    let rows = rows.map(|row| {
        let row = row?;
        Ok((row.try_get("id")?, event(&row)?))
    });
    record_page::read(rows, ids, |(_, event)| Ok(event)).await
}

impl PagedRow for (i64, Event) {
    type Id = i64;

    fn id(&self) -> i64 {
        self.0
    }

    fn length(&self) -> usize {
        self.1.name.len() + self.1.message.len() + self.1.props.len()
    }
}

async fn count(connection: &mut PgConnection, filter: &EventFilter) -> Result<EventCounts, Error> {
    let mut query =
        QueryBuilder::<Postgres>::new("select severity, count(*) as number from events where ");
    push_filter(&mut query, filter);
    query.push(" group by severity");
    let mut counts = EventCounts::default();
    for row in query.build().fetch_all(connection).await? {
        let severity: String = row.try_get("severity")?;
        let number: i64 = row.try_get("number")?;
        for (slot, known) in counts.by_severity.iter_mut().zip(EventSeverity::ALL) {
            if known.as_str() == severity {
                *slot = number;
                if filter.severities.is_empty() || filter.severities.contains(known) {
                    counts.chosen += number;
                }
            }
        }
    }
    Ok(counts)
}

fn push_severities(query: &mut QueryBuilder<Postgres>, filter: &EventFilter) {
    if !filter.severities.is_empty() {
        query
            .push(" and severity = any(")
            .push_bind(texts(&filter.severities))
            .push(")");
    }
}

fn push_filter(query: &mut QueryBuilder<Postgres>, filter: &EventFilter) {
    query
        .push("category = any(")
        .push_bind(texts(&filter.categories))
        .push(")");
    if let Some(id) = filter.cluster_id {
        query.push(" and cluster_id = ").push_bind(id);
    }
    if let Some(id) = filter.infra_env_id {
        query.push(" and infra_env_id = ").push_bind(id);
    }
    if let Some(text) = &filter.message {
        query
            .push(" and position(lower(")
            .push_bind(text.clone())
            .push(") in lower(message)) > 0");
    }
    // The three filters about hosts are a union: these hosts, deleted hosts, no host.
    if !filter.host_ids.is_empty() || filter.deleted_hosts || filter.cluster_level {
        query
            .push(" and (host_id = any(")
            .push_bind(filter.host_ids.clone())
            .push(")");
        if filter.deleted_hosts {
            query.push(
                " or (host_id is not null and not exists (select 1 from hosts where hosts.id = events.host_id))",
            );
        }
        if filter.cluster_level {
            query.push(" or host_id is null");
        }
        query.push(")");
    }
}

fn texts<T: std::fmt::Display>(values: &[T]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

fn event(row: &sqlx::postgres::PgRow) -> Result<Event, sqlx::Error> {
    let severity: String = row.try_get("severity")?;
    let category: String = row.try_get("category")?;
    let time: Timestamp = row.try_get("event_time")?;
    Ok(Event {
        name: row.try_get("name")?,
        cluster_id: row.try_get::<Option<Uuid>, _>("cluster_id")?.map(ClusterId),
        host_id: row.try_get::<Option<Uuid>, _>("host_id")?.map(HostId),
        infra_env_id: row
            .try_get::<Option<Uuid>, _>("infra_env_id")?
            .map(InfraEnvId),
        // The table's checks admit only the known values.
        severity: severity.parse().unwrap_or_default(),
        category: Some(category.parse().unwrap_or_default()),
        message: row.try_get("message")?,
        event_time: time.into(),
        request_id: row.try_get("request_id")?,
        props: row.try_get("props")?,
    })
}

/// Times of the last failure of validations: those of a cluster and its hosts, or of the unbound hosts of an infra-env.
pub(crate) async fn failure_times(
    connection: &mut PgConnection,
    cluster: Option<ClusterId>,
    infra_env: Option<InfraEnvId>,
) -> Result<FailureTimes, Error> {
    // Users may store events of these names, too: the id is searched, as a malformed text cannot be cast.
    let rows = sqlx::query!(
        r#"select host_id, substring(props from '"validation_id":"([a-z0-9-]+)"') as id, max(event_time) as "since!"
        from events
        where name in ('host_validation_failed', 'cluster_validation_failed')
            and (cluster_id = $1 or (infra_env_id = $2 and cluster_id is null))
        group by 1, 2"#,
        cluster.map(|id| id.0),
        infra_env.map(|id| id.0)
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .filter_map(|row| Some(((row.host_id.map(HostId), row.id?), row.since)))
        .collect())
}
