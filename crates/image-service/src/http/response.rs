//! Responses with images.

use std::time::SystemTime;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use service::conditional::Validator;
use service::representation::Representation;
use sha2::{Digest as _, Sha256};

use crate::content::ContentPieces;
use crate::image::BaseImage;

/// Content and its headers.
pub(super) struct ImageRepresentation {
    pub(super) content: ContentPieces,
    /// Name under which a browser saves it.
    pub(super) file_name: String,
    pub(super) content_type: &'static str,
    pub(super) modified: SystemTime,
    /// The entity tag.
    pub(super) identity: String,
}

/// The response to a GET or HEAD. `guard` is held until the last byte. Headers follow assisted-image-service, with an
/// entity tag in addition.
pub(super) fn respond<G: Send + Sync + 'static>(
    head: &Parts,
    image: ImageRepresentation,
    guard: G,
) -> Response {
    let mut headers = HeaderMap::new();
    let disposition = format!("attachment; filename={}", image.file_name);
    // Names here consist of ids; an invalid header value would be omitted.
    if let Ok(value) = HeaderValue::from_str(&disposition) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    let representation = Representation {
        content: image.content,
        content_type: HeaderValue::from_static(image.content_type),
        validator: Validator::new(&image.identity, image.modified),
        boundary: image.identity,
        headers,
    };
    representation.respond(head, guard)
}

/// Entity tag of parts of a base image: equal for equal bytes, in each replica.
pub(super) fn identity(content: &ContentPieces, base: &BaseImage) -> String {
    let mut hash = Sha256::new();
    hash.update(base.fingerprint);
    hash.update(content.length().to_le_bytes());
    for bytes in content.memory() {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    hex::encode(&hash.finalize()[..16])
}
