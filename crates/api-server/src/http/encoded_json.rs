//! Responses that are encoded before they reach their handler.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

/// JSON text of a response.
#[derive(Debug)]
pub(crate) struct EncodedJson<B>(pub(crate) B);

impl<B: IntoResponse> IntoResponse for EncodedJson<B> {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, "application/json")], self.0).into_response()
    }
}
