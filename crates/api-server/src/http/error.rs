//! Error responses, in the API's two shapes.
//!
//! Source: openshift/assisted-service, observed over HTTP: shape and text of 404, 405 and validation errors.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use model::Error;
use serde::Serialize;
use serde_json::json;
use service::status_code;

/// Units: seconds. Agents wait 2 to 10 s between attempts.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

/// Source: RFC 6750, 3.
const CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer");

/// Reason of an error response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// Of a use case: shape `error`.
    #[error(transparent)]
    Domain(#[from] Error),
    /// The request violates the API description.
    #[error("{0}")]
    Request(String),
    /// An invalid file name: shape `error`, status 422.
    #[error("{0}")]
    Unprocessable(String),
}

impl ApiError {
    /// Invalid parameter `name` in `place`: path, query or body.
    pub(crate) fn parameter(name: &str, place: &str, problem: impl std::fmt::Display) -> Self {
        Self::Request(format!("{name} in {place} {problem}"))
    }
}

/// The shape `error` of the API description.
#[derive(Debug, Serialize)]
struct ErrorBody<'a> {
    code: String,
    href: &'a str,
    id: u16,
    kind: &'a str,
    reason: String,
}

fn error(status: StatusCode, reason: String) -> Response {
    let id = status.as_u16();
    let body = ErrorBody {
        code: id.to_string(),
        href: "",
        id,
        kind: "Error",
        reason,
    };
    (status, Json(body)).into_response()
}

/// The shape of the description's own checks.
fn plain(status: StatusCode, message: &str) -> Response {
    (
        status,
        Json(json!({ "code": status.as_u16(), "message": message })),
    )
        .into_response()
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        match self {
            Self::Domain(cause) => domain(&cause),
            Self::Request(message) => {
                tracing::debug!(message, "request refused: violates the API description");
                plain(StatusCode::BAD_REQUEST, &message)
            }
            Self::Unprocessable(reason) => error(StatusCode::UNPROCESSABLE_ENTITY, reason),
        }
    }
}

fn domain(cause: &Error) -> Response {
    let status = status_code(cause);
    if status.is_server_error() {
        tracing::error!(error = cause.chain(), "request failed");
    } else {
        tracing::debug!(error = cause.chain(), "request refused");
    }
    match cause {
        Error::Unauthenticated { .. } => {
            let challenge = [(header::WWW_AUTHENTICATE, CHALLENGE)];
            (challenge, plain(status, &cause.to_string())).into_response()
        }
        Error::Forbidden { .. } => plain(status, &cause.to_string()),
        Error::Unavailable { .. } => {
            let mut response = error(status, cause.to_string());
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, RETRY_AFTER);
            response
        }
        _ => error(status, cause.to_string()),
    }
}

/// 404 for a path without operations.
pub(crate) fn path_not_found(path: &str) -> Response {
    plain(StatusCode::NOT_FOUND, &format!("path {path} was not found"))
}

/// 405 for a path whose operations have other methods.
pub(crate) fn method_not_allowed(method: &str, allowed: &str) -> Response {
    let message = format!("method {method} is not allowed, but [{allowed}] are");
    let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, &message);
    if let Ok(value) = HeaderValue::from_str(allowed) {
        response.headers_mut().insert(header::ALLOW, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_has_its_status() {
        for (cause, expected) in [
            (Error::not_found("cluster", "x"), 404),
            (Error::invalid("name", "is empty"), 400),
            (Error::conflict("no"), 409),
            (
                Error::Unauthenticated {
                    reason: String::new(),
                },
                401,
            ),
            (
                Error::Forbidden {
                    reason: String::new(),
                },
                403,
            ),
            (
                Error::TooLarge {
                    what: "body",
                    limit: 1,
                },
                413,
            ),
            (Error::unavailable("the database", "gone"), 503),
            (Error::internal("storing", "disk"), 500),
        ] {
            assert_eq!(domain(&cause).status().as_u16(), expected, "{cause:?}");
        }
    }

    #[test]
    fn unavailable_has_retry_after() {
        let response = domain(&Error::unavailable("the database", "gone"));
        assert!(response.headers().contains_key(header::RETRY_AFTER));
    }
}
