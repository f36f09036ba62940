//! The ignition of a discovery image: everything a host needs to call back.
//!
//! Pure: what goes in is given. Embedding it in an image is the image service's part. The one invariant: the result
//! is small enough for the embed area of a live image, or the error says by how much it is not.

mod agent;
mod build;
mod context;
mod network;
mod ntp;
mod proxy;

pub use build::{LIMIT_BYTES, ignition};
pub use context::{Context, Secrets};
pub(crate) use network::archive as static_networks;
