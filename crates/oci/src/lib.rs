//! The vocabulary of images: names, digests, media types, manifests with their original bytes, and the JWS of schema 1
//! manifests and tokens.
//!
//! No async and no I/O. The one invariant: a parsed value keeps its original bytes, over which its digest is computed.

pub mod artifact_tag;
mod descriptor;
mod digest;
mod docker_hub;
pub mod jws;
pub mod live_image;
mod manifest;
pub mod media_type;
mod name;
mod reference;
mod referrer;
mod registry;
mod schema1;

pub use descriptor::{Descriptor, Platform};
pub use digest::{Algorithm, Digest, Hasher};
pub use docker_hub::is_docker_hub;
pub use manifest::{Kind, MANIFEST_LIMIT_BYTES, Manifest};
pub use model::Error;
pub use name::{Repository, Tag};
pub use reference::{Reference, Target, Transport};
pub use referrer::Referrer;
pub use registry::Registry;
