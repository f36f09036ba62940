//! The discovery ignition: starts the agent, with its trust, proxy, mirrors and networks.
//!
//! Pure; the image service embeds it in an image. Invariant: the result fits the embed area of a live image, or the
//! error states its size.

mod agent;
mod build;
mod context;
mod initrd;
mod network;
mod ntp;
mod proxy;

pub use build::{LIMIT_BYTES, ignition};
pub use context::{DiscoveryOptions, DiscoverySecrets};
pub(crate) use initrd::archive as minimal_initrd;
pub(crate) use network::archive as static_networks;
