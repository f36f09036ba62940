//! Answers of handlers, and the headers that several of them send.

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;

use crate::error::RegistryError;

pub(super) type Answer = Result<Response, RegistryError>;

pub(super) const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");

/// Says that an upstream could not be asked. Source: RFC 7234, and distribution-spec, warnings.
pub(super) const UNCONFIRMED: [(HeaderName, HeaderValue); 1] = [(
    header::WARNING,
    HeaderValue::from_static(
        "299 - \"the upstream registry cannot be reached: this is the local copy\"",
    ),
)];
pub(super) const UPLOAD_UUID: HeaderName = HeaderName::from_static("docker-upload-uuid");
