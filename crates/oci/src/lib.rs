//! Images as registries keep them: names, digests, manifests with their original bytes, the client, credentials,
//! layers, signatures, and the blob store under a registry; besides, how the hosts of registries and neighbours are
//! found, and how files of web servers are fetched.
//!
//! Nothing here serves requests. The one invariant: what is handed out under a digest had that digest when the
//! last byte was read.

pub mod client;
mod credentials;
mod digest;
pub mod image;
pub mod jws;
pub mod layer;
#[cfg(test)]
mod layer_tests;
mod layout;
mod manifest;
pub mod media_type;
mod mirrors;
mod name;
mod reference;
pub mod resolve;
mod schema1;
pub mod signature;
pub mod store;
pub mod trust;
pub mod web;

pub use client::{Client, ClientOptions};
pub use credentials::{Credentials, Login};
pub use digest::{Algorithm, Digest, Hasher};
pub use manifest::{Descriptor, Kind, MANIFEST_LIMIT_BYTES, Manifest, Platform};
pub use mirrors::Mirrors;
pub use model::Error;
pub use name::{Repository, Tag};
pub use reference::{Reference, Target};
