//! For demo and tests: throw-away servers, content and certificates, the simulated installer.
//!
//! Nothing here runs in production, and no server depends on it.

pub mod certificates;
pub mod chromium;
pub mod demo;
pub mod installer;
pub mod ports;
pub mod postgres;
pub mod redirecting;
pub mod release;
#[cfg(feature = "s3")]
pub mod s3;
pub mod signer;
mod skip;
pub mod small_disk;
pub mod tokens;
pub mod wire;

pub use test_iso as iso;

pub use skip::skipped;
