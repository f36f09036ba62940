//! Handlers of events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{FromRef, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use axum::response::sse::{self, KeepAlive, Sse};
use futures_util::stream::{self, PollNext};
use futures_util::{Stream, StreamExt as _};
use model::events::{Event, EventCategory};
use service::server::ClientAddress;

use super::error::ApiError;
use super::extract::JsonBody;
use super::paged_list::paged_list;
use super::query::Query;
use crate::app::App;
use crate::app::access::AccessControl;
use crate::app::change_stream::ChangeStreams;
use crate::app::event_stream::EventStreams;
use crate::app::events::Events;
use crate::auth::Caller;
use crate::db::EventFilter;

/// Default page size. Source: openshift/assisted-service, as the names of the headers below.
const DEFAULT_LIMIT: i64 = 5000;
/// Largest page, also for limit -1; the rest is read by offset.
pub(crate) const MAX_LIMIT: i64 = 50_000;
/// In the order of the severities.
const SEVERITY_COUNTS: [HeaderName; 4] = [
    HeaderName::from_static("severity-count-info"),
    HeaderName::from_static("severity-count-warning"),
    HeaderName::from_static("severity-count-error"),
    HeaderName::from_static("severity-count-critical"),
];
const EVENT_COUNT: HeaderName = HeaderName::from_static("event-count");
/// Name of the server-sent events of changes.
const CHANGE: &str = "change";
/// Sent by clients that reconnect. Source: the HTML standard, "Server-sent events".
const LAST_EVENT_ID: &str = "last-event-id";
/// Interval of comments on a quiet stream: shorter than the idle timeouts of proxies.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub(crate) async fn list(
    State(access): State<Arc<AccessControl>>,
    State(events): State<Arc<Events>>,
    caller: Caller,
    query: Query,
) -> Result<(HeaderMap, Response), ApiError> {
    let filter = filter(&query)?;
    access.check_events(&caller, &filter).await?;
    let (ids, counts) = events.ids(&filter).await?;
    let mut headers = HeaderMap::new();
    for (name, count) in SEVERITY_COUNTS.into_iter().zip(counts.by_severity) {
        headers.insert(name, HeaderValue::from(count));
    }
    headers.insert(EVENT_COUNT, HeaderValue::from(counts.chosen));
    let list = paged_list(ids, move |ids| {
        let events = Arc::clone(&events);
        async move { events.page(&ids).await }
    });
    Ok((headers, list.await?))
}

/// The streams, and access to their subjects.
#[derive(Debug, Clone)]
pub(crate) struct StreamState {
    access: Arc<AccessControl>,
    events: Arc<EventStreams>,
    changes: Arc<ChangeStreams>,
}

impl FromRef<App> for StreamState {
    fn from_ref(app: &App) -> Self {
        Self {
            access: app.part(),
            events: app.part(),
            changes: app.part(),
        }
    }
}

/// Server-sent events, one for each event of the filter: `id` resumes the stream in `Last-Event-ID`, `data` is the event
/// as listings have it. With `changes=true` those called `change` have the ids of a cluster or infra-env that changed, with or
/// without an event.
pub(crate) async fn stream(
    State(streams): State<StreamState>,
    Extension(client): Extension<ClientAddress>,
    caller: Caller,
    query: Query,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<sse::Event, Infallible>>>, ApiError> {
    let resumed = headers.get(LAST_EVENT_ID).map(|value| {
        let id = value.to_str().ok().and_then(|text| text.parse().ok());
        id.ok_or_else(|| {
            ApiError::parameter("Last-Event-ID", "header", "should be the id of an event")
        })
    });
    let filter = filter(&query)?;
    streams.access.check_events(&caller, &filter).await?;
    let changes = query
        .flag("changes")
        .then(|| streams.changes.open(filter.clone()));
    let changes = stream::iter(changes).flatten().map(|change| {
        let event = sse::Event::default().event(CHANGE);
        let text = serde_json::to_string(&change).unwrap_or_default();
        Ok(event.data(text))
    });
    let events = streams
        .events
        .open(client, &caller, filter, resumed.transpose()?);
    let events = events.await?.map(|streamed| {
        let event = sse::Event::default().id(streamed.mark.to_string());
        // Events are texts, ids and times: printing them cannot fail.
        let text = serde_json::to_string(&*streamed.event).unwrap_or_default();
        Ok(event.data(text))
    });
    // The end of the events, as at shutdown, is the end of both.
    let all = stream::select_with_strategy(
        events.map(Some).chain(stream::iter([None])),
        changes.map(Some),
        left_first,
    )
    .take_while(|one| std::future::ready(one.is_some()))
    .filter_map(std::future::ready);
    Ok(Sse::new(all).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

fn left_first(_: &mut ()) -> PollNext {
    PollNext::Left
}

fn filter(query: &Query) -> Result<EventFilter, ApiError> {
    let mut host_ids = query.ids("host_ids")?;
    host_ids.extend(query.id("host_id")?);
    let mut categories = query.some_of::<EventCategory>("categories")?;
    if categories.is_empty() {
        categories.push(EventCategory::User);
    }
    let order = query.optional_one_of("order", &["ascending", "descending"])?;
    let descending = order == Some("descending");
    let limit = query.integer("limit")?.unwrap_or(DEFAULT_LIMIT);
    let offset = query.integer("offset")?.unwrap_or(0);
    if limit < -1 || offset < 0 {
        return Err(ApiError::parameter(
            "limit and offset",
            "query",
            "should be at least 0; limit -1 is no limit",
        ));
    }
    Ok(EventFilter {
        cluster_id: query.id("cluster_id")?,
        host_ids,
        infra_env_id: query.id("infra_env_id")?,
        categories,
        severities: query.some_of("severities")?,
        message: query.text("message").map(str::to_owned),
        deleted_hosts: query.flag("deleted_hosts"),
        cluster_level: query.flag("cluster_level"),
        descending,
        limit: Some(if limit < 0 {
            MAX_LIMIT
        } else {
            limit.min(MAX_LIMIT)
        }),
        offset,
    })
}

pub(crate) async fn trigger(
    State(access): State<Arc<AccessControl>>,
    State(events): State<Arc<Events>>,
    caller: Caller,
    body: JsonBody,
) -> Result<StatusCode, ApiError> {
    let mut event: Event = body.parse("trigger-event-params")?;
    let missing = if event.message.is_empty() {
        Some("message")
    } else {
        event.event_time.0.is_none().then_some("event_time")
    };
    if let Some(member) = missing {
        return Err(ApiError::parameter(member, "body", "is required"));
    }
    access.check_event(&caller, &event).await?;
    event.category.get_or_insert(EventCategory::User);
    events.trigger(event).await?;
    Ok(StatusCode::CREATED)
}
