//! Handlers of events.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use model::events::{Event, EventCategory};

use super::error::ApiError;
use super::extract::JsonBody;
use super::query::Query;
use crate::app::ApiServer;
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

pub(crate) async fn list(
    State(app): State<ApiServer>,
    query: Query,
) -> Result<(HeaderMap, Json<Vec<Event>>), ApiError> {
    let filter = filter(&query)?;
    let (events, counts) = app.list_events(&filter).await?;
    let mut headers = HeaderMap::new();
    for (name, count) in SEVERITY_COUNTS.into_iter().zip(counts.by_severity) {
        headers.insert(name, HeaderValue::from(count));
    }
    headers.insert(EVENT_COUNT, HeaderValue::from(counts.chosen));
    Ok((headers, Json(events)))
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
    State(app): State<ApiServer>,
    body: JsonBody,
) -> Result<StatusCode, ApiError> {
    let event: Event = body.parse("trigger-event-params")?;
    if event.category.is_none() {
        return Err(ApiError::parameter(
            "category",
            "body",
            "should be one of [user metrics]",
        ));
    }
    app.trigger_event(event).await?;
    Ok(StatusCode::CREATED)
}
