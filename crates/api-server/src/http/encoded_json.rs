//! Responses that are encoded before they reach their handler.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

/// JSON text of a response.
#[derive(Debug)]
pub(crate) struct EncodedJson(pub(crate) Vec<u8>);

impl IntoResponse for EncodedJson {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, "application/json")], self.0).into_response()
    }
}
