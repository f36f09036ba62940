//! How far the index agrees with the folder, and a comparison on request.

use axum::Json;
use axum::http::{Method, StatusCode};
use axum::response::IntoResponse as _;

use super::headers::Answer;
use crate::error::RegistryError;
use crate::storage::Store;

/// The progress; with `POST`, of a comparison that begins now unless one runs.
///
/// Errors: the content is in a bucket, which has no index.
pub(super) fn answer(store: &Store, method: &Method) -> Answer {
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
