//! Client of the distribution protocol, and of image layouts in the place of a registry.
//!
//! It has logins and mirrors by the files of container tools, image layouts, content of images, release signatures.
//! Nothing here serves requests. The one invariant: content is verified against its digest before its last byte is
//! returned.

mod auth_file;
pub mod client;
mod credentials;
pub mod image;
pub mod layer;
#[cfg(test)]
mod layer_tests;
mod layout;
pub mod live_image;
mod mirrors;
pub mod signature;

pub use auth_file::registry_logins;
pub use client::{Client, ClientIdentity, ClientOptions};
pub use credentials::{Credentials, Login};
pub use mirrors::{MirrorSource, Mirrors};
