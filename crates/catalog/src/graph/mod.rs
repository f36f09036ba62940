//! The upgrade graph of a channel.

mod chain;

pub use chain::{Flaw, chain, head};
