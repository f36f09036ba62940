//! The report of the scrub, and a scrub on request.

use axum::Json;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::scrub::Scrub;

/// The report; with `POST`, of a scrub that begins now unless one runs.
pub(super) fn answer(scrub: &Scrub, method: &Method) -> Response {
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
