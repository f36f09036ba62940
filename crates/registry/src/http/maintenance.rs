//! Maintenance on request: garbage collection, the scrub, and comparisons of the index with the folder.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::FutureExt as _;
use serde_json::json;

use super::headers::Answer;
use crate::error::RegistryError;
use crate::gc::Collector;
use crate::scrub::Scrub;
use crate::storage::Store;

/// Between bytes that keep the connection alive, so that no client times out.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// The result or the errors, as JSON after a blank for each interval. The collection continues when the client leaves.
pub(super) fn collect(collector: Arc<Collector>, is_dry: bool) -> Response {
    let collecting = async move { collector.collect(is_dry).await }.boxed();
    let body = futures_util::stream::unfold(Some(collecting), |collecting| async {
        let mut collecting = collecting?;
        let Ok(collected) = tokio::time::timeout(KEEP_ALIVE, &mut collecting).await else {
            return Some((
                Ok::<_, Infallible>(Bytes::from_static(b" ")),
                Some(collecting),
            ));
        };
        let text = match collected {
            Ok(collected) => json!(*collected),
            Err(error) => error.body(),
        };
        Some((Ok(Bytes::from(text.to_string())), None))
    });
    let kind = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, kind)], Body::from_stream(body)).into_response()
}

/// The report of the scrub; with `POST`, of one that begins now unless one runs.
pub(super) fn scrub(scrub: &Scrub, method: &Method) -> Response {
    let status = if *method == Method::POST {
        scrub.ask();
        StatusCode::ACCEPTED
    } else {
        StatusCode::OK
    };
    let report = scrub.report();
    let mut body = json!(*report);
    body["percent"] = report.progress().into();
    (status, Json(body)).into_response()
}

/// The progress of the comparison of index and folder; with `POST`, of one that begins now unless one runs.
///
/// Errors: the content is in a bucket, which has no index.
pub(super) fn reindex(store: &Store, method: &Method) -> Answer {
    let mut status = StatusCode::OK;
    if *method == Method::POST {
        store.reindex();
        status = StatusCode::ACCEPTED;
    }
    let Some(progress) = store.adoption() else {
        return Err(RegistryError::unsupported(
            "the content is in a bucket, which has no index",
        ));
    };
    Ok((status, Json(progress)).into_response())
}
