//! Error responses: a status and one line of text.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use model::Error;
use service::status_code;

use crate::image::CustomiseError;

/// Value of `Retry-After`. Units: seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

/// An error as a response.
#[derive(Debug)]
pub(super) enum ErrorResponse {
    /// A part of the path cannot name anything: 404 with this reason.
    Path(String),
    Error(Error),
}

impl From<Error> for ErrorResponse {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<CustomiseError> for ErrorResponse {
    fn from(error: CustomiseError) -> Self {
        Self::Error(match error {
            CustomiseError::IgnitionTooLarge { .. }
            | CustomiseError::KargsTooLong { .. }
            | CustomiseError::KargsNotPrintable(_)
            | CustomiseError::MalformedReplacement(_)
            | CustomiseError::NoKargsArea
            | CustomiseError::NoLoaderConfig
            | CustomiseError::Layout(_) => Error::conflict(error.to_string()),
            CustomiseError::Ignition(_) | CustomiseError::Areas(_) => {
                Error::internal("customising the image", error)
            }
        })
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        let error = match self {
            Self::Path(reason) => return plain(StatusCode::NOT_FOUND, format!("{reason}\n")),
            Self::Error(error) => error,
        };
        let status = status_code(&error);
        if status.is_server_error() {
            tracing::error!(
                error = error.chain(),
                code = status.as_u16(),
                "request failed"
            );
        } else {
            tracing::debug!(
                error = error.chain(),
                code = status.as_u16(),
                "request refused"
            );
        }
        let mut response = plain(status, format!("{error}\n"));
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, RETRY_AFTER);
        }
        response
    }
}

const NO_SNIFFING: (HeaderName, HeaderValue) = (
    header::X_CONTENT_TYPE_OPTIONS,
    HeaderValue::from_static("nosniff"),
);

/// A plain-text response.
pub(super) fn plain(status: StatusCode, text: impl Into<String>) -> Response {
    (status, [NO_SNIFFING], text.into()).into_response()
}

/// 404 for unknown paths. Source: Go's `http.NotFound`, as in assisted-image-service.
pub(super) async fn unknown_path() -> Response {
    plain(StatusCode::NOT_FOUND, "404 page not found\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_has_its_status() {
        let reason = || "r".to_owned();
        for (error, code) in [
            (Error::not_found("OS image", "x"), 404),
            (Error::invalid("version", "r"), 400),
            (Error::conflict("r"), 409),
            (Error::Unauthenticated { reason: reason() }, 401),
            (Error::Forbidden { reason: reason() }, 403),
            (
                Error::TooLarge {
                    what: "x",
                    limit: 1,
                },
                413,
            ),
            (Error::unavailable("x", "cause"), 503),
            (Error::internal("x", "cause"), 500),
        ] {
            let response = ErrorResponse::Error(error).into_response();
            assert_eq!(response.status().as_u16(), code);
            let waits = response.headers().contains_key(header::RETRY_AFTER);
            assert_eq!(waits, code == 503);
        }
    }
}
