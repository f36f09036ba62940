//! The vocabulary of images: names, digests, media types, manifests with their original bytes, and the JWS of old
//! manifests and tokens.
//!
//! Nothing here waits or connects. The one invariant: a value that parsed keeps the bytes that it was parsed from, so
//! that its digest stays true.

mod digest;
pub mod jws;
mod manifest;
pub mod media_type;
mod name;
mod reference;
mod referrer;
mod schema1;

pub use digest::{Algorithm, Digest, Hasher};
pub use manifest::{Descriptor, Kind, MANIFEST_LIMIT_BYTES, Manifest, Platform};
pub use model::Error;
pub use name::{Repository, Tag};
pub use reference::{LAYOUT_PREFIX, Reference, Target};
pub use referrer::Referrer;
