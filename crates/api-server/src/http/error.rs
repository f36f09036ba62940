//! How a refusal looks on the wire: the API's two shapes, each where clients expect it.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use model::Error;
use serde::Serialize;
use serde_json::json;

/// Units: seconds. When a client should try again; agents wait 2 to 10 s between tries anyway.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

/// Why a request was not answered as asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// Said by a use case: shape `error`.
    #[error(transparent)]
    Domain(#[from] Error),
    /// The request does not fit the API description.
    #[error("{0}")]
    Request(String),
    /// A part of the description that this server does not do.
    #[error("operation {0} is not implemented by this server")]
    NotImplemented(&'static str),
    /// A name that the operation refuses: shape `error`, status 422.
    #[error("{0}")]
    Unprocessable(String),
}

impl Refusal {
    /// `name`, in a part of the request, is wrong.
    pub(crate) fn parameter(name: &str, place: &str, problem: impl std::fmt::Display) -> Self {
        Self::Request(format!("{name} in {place} {problem}"))
    }
}

/// The shape `error` of the API description.
#[derive(Debug, Serialize)]
struct Body<'a> {
    code: String,
    href: &'a str,
    id: u16,
    kind: &'a str,
    reason: String,
}

fn error(status: StatusCode, reason: String) -> Response {
    let id = status.as_u16();
    let body = Body {
        code: id.to_string(),
        href: "",
        id,
        kind: "Error",
        reason,
    };
    (status, Json(body)).into_response()
}

/// The shape that the description's own checks answer with.
fn plain(status: StatusCode, message: &str) -> Response {
    (
        status,
        Json(json!({ "code": status.as_u16(), "message": message })),
    )
        .into_response()
}

fn status(error: &Error) -> StatusCode {
    match error {
        Error::NotFound { .. } => StatusCode::NOT_FOUND,
        Error::Invalid { .. } => StatusCode::BAD_REQUEST,
        Error::Conflict { .. } => StatusCode::CONFLICT,
        Error::Unauthenticated { .. } => StatusCode::UNAUTHORIZED,
        Error::Forbidden { .. } => StatusCode::FORBIDDEN,
        Error::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        Error::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
        Error::Internal { .. } => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::Domain(cause) => domain(&cause),
            Self::Request(message) => {
                tracing::debug!(message, "refused: does not fit the description");
                plain(StatusCode::BAD_REQUEST, &message)
            }
            Self::NotImplemented(_) => error(StatusCode::NOT_IMPLEMENTED, self.to_string()),
            Self::Unprocessable(reason) => error(StatusCode::UNPROCESSABLE_ENTITY, reason),
        }
    }
}

fn domain(cause: &Error) -> Response {
    let status = status(cause);
    if status.is_server_error() {
        tracing::error!(error = cause.chain(), "the request failed");
    } else {
        tracing::debug!(error = cause.chain(), "refused");
    }
    match cause {
        Error::Unauthenticated { .. } | Error::Forbidden { .. } => {
            plain(status, &cause.to_string())
        }
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

/// No operation has this path.
pub(crate) fn path_not_found(path: &str) -> Response {
    plain(StatusCode::NOT_FOUND, &format!("path {path} was not found"))
}

/// Operations of this path have other methods.
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
    fn unavailable_says_when_to_come_again() {
        let response = domain(&Error::unavailable("the database", "gone"));
        assert!(response.headers().contains_key(header::RETRY_AFTER));
    }
}
