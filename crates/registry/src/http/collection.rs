//! Garbage, collected because somebody asks.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use blob_store::StoreError;
use bytes::Bytes;
use serde_json::json;

use super::RegistryError;
use crate::app::App;
use crate::gc;

/// How often a client hears that there is an end to wait for: before it takes the connection for dead.
const BEAT: Duration = Duration::from_secs(10);

/// What was collected, or the errors, as JSON after as many blanks as it takes time. Goes on without its client.
pub(super) fn answer(app: App, is_dry: bool) -> Response {
    let collecting = tokio::spawn(async move { gc::collect(&app, is_dry).await });
    let body = futures_util::stream::unfold(Some(collecting), |collecting| async {
        let mut collecting = collecting?;
        let Ok(ended) = tokio::time::timeout(BEAT, &mut collecting).await else {
            return Some((
                Ok::<_, Infallible>(Bytes::from_static(b" ")),
                Some(collecting),
            ));
        };
        let text = match ended.unwrap_or_else(|error| Err(StoreError::from(error))) {
            Ok(collected) => json!(collected),
            Err(error) => RegistryError::from(error).body(),
        };
        Some((Ok(Bytes::from(text.to_string())), None))
    });
    let kind = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, kind)], Body::from_stream(body)).into_response()
}
