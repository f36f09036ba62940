//! Mapping of registry responses to errors.

use std::fmt::Display;

use model::Error;
use oci::Reference;
use reqwest::{Response, StatusCode};
use serde::Deserialize;

/// Units: bytes. Largest part of an error body that is read.
const TEXT_LIMIT_BYTES: usize = 16 * 1024;

/// The role of the other side in messages.
const REGISTRY: &str = "the container registry";

#[derive(Deserialize)]
struct ErrorBody {
    errors: Vec<ErrorItem>,
}

#[derive(Deserialize)]
struct ErrorItem {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

/// The registry cannot be reached, or broke off. `place` is the registry, or one of its repositories.
pub(super) fn unavailable(place: &str, cause: &(dyn std::error::Error + 'static)) -> Error {
    Error::unavailable(REGISTRY, format!("{place}: {}", model::error::chain(cause)))
}

/// The registry speaks plain HTTP instead of TLS; `remedy` is the caller's way to allow that.
pub(super) fn plain_http(place: &str, remedy: Option<&str>) -> Error {
    let remedy = remedy.map_or_else(String::new, |remedy| {
        format!("; {remedy} allows that, without protection of content and logins")
    });
    protocol_error(
        place,
        format!("it answers in plain HTTP instead of TLS{remedy}"),
    )
}

/// Whether TLS failed on an HTTP response, whose first byte is no TLS record type.
pub(super) fn is_plain_http(failure: &(dyn std::error::Error + 'static)) -> bool {
    let not_tls = rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType);
    model::error::causes(failure).any(|cause| cause.downcast_ref() == Some(&not_tls))
}

/// The registry violates the protocol; `place` as for [`unavailable`].
pub(super) fn protocol_error(place: impl Display, what: impl Display) -> Error {
    Error::unavailable(REGISTRY, format!("{place}: {what}"))
}

/// The error of an unsuccessful response to a request for an image.
pub(super) async fn image_refused(reference: &Reference, response: Response) -> Error {
    refused(
        &reference.registry,
        response,
        "image",
        &reference.to_string(),
    )
    .await
}

/// The error of an unsuccessful response; `kind` and `id` name the requested item.
pub(super) async fn refused(
    registry: impl Display,
    response: Response,
    kind: &'static str,
    id: &str,
) -> Error {
    let status = response.status();
    let details = error_text(response).await;
    let text = format!("{registry} answered {status} to {kind} {id}{details}");
    match status {
        StatusCode::NOT_FOUND => Error::not_found(kind, id),
        StatusCode::UNAUTHORIZED => Error::Unauthenticated { reason: text },
        StatusCode::FORBIDDEN => Error::Forbidden { reason: text },
        StatusCode::CONFLICT | StatusCode::METHOD_NOT_ALLOWED => Error::conflict(text),
        StatusCode::TOO_MANY_REQUESTS => Error::unavailable(REGISTRY, text),
        status if status.is_server_error() => Error::unavailable(REGISTRY, text),
        _ => Error::invalid(kind, text),
    }
}

async fn error_text(mut response: Response) -> String {
    let mut bytes = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > TEXT_LIMIT_BYTES {
            return String::new();
        }
    }
    let Ok(body) = serde_json::from_slice::<ErrorBody>(&bytes) else {
        return String::new();
    };
    let items = body
        .errors
        .iter()
        .map(|item| format!("{} {}", item.code, item.message));
    format!(": {}", items.collect::<Vec<_>>().join("; "))
}
