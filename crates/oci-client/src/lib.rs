//! The client side of the distribution protocol, and of folders that take a registry's place.
//!
//! Logins and mirrors by the files of container tools, image layouts, content of images, release signatures. Nothing
//! here serves requests. The one invariant: content that is handed out under a digest had that digest when its last byte
//! was read.

mod auth_file;
pub mod client;
mod credentials;
pub mod image;
pub mod layer;
#[cfg(test)]
mod layer_tests;
mod layout;
mod mirrors;
pub mod signature;

pub use auth_file::registry_logins;
pub use client::{Client, ClientOptions};
pub use credentials::{Credentials, Login};
pub use mirrors::Mirrors;
