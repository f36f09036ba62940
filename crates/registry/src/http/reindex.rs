//! How far the index agrees with the folder, and a comparison on request.

use axum::Json;
use axum::http::{Method, StatusCode};
use axum::response::IntoResponse as _;

use super::{Answer, RegistryError};
use crate::app::App;

/// The progress; with `POST`, of a comparison that begins now unless one runs.
///
/// Errors: the content is in a bucket, which has no index.
pub(super) fn answer(app: &App, method: &Method) -> Answer {
    let mut status = StatusCode::OK;
    if *method == Method::POST {
        app.store.reindex();
        status = StatusCode::ACCEPTED;
    }
    let Some(progress) = app.store.adoption() else {
        return Err(RegistryError::unsupported(
            "the content is in a bucket, which has no index",
        ));
    };
    Ok((status, Json(progress)).into_response())
}
