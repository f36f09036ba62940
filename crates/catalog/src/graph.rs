//! The upgrade graph of a channel.

mod chain;
mod keep;
mod render;
#[cfg(test)]
mod tests;
mod upgrades;

pub use chain::{ChainEnd, Flaw, chain, chain_to, head};
pub use keep::{Bounds, Kept, keep, keep_from, keep_named};
pub use render::{dot, mermaid};
pub use upgrades::{Edge, Graph, Way};
