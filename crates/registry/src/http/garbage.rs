//! Garbage collection on request.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::FutureExt as _;
use serde_json::json;

use crate::gc::Collector;

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
