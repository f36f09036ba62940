//! Upgrade graphs of channels.

mod chain;
mod prune;
mod render;
#[cfg(test)]
mod tests;
mod upgrades;

pub use chain::{ChainEnd, Flaw, chain, chain_to, head};
pub use prune::{KeptEntries, VersionBounds, keep, keep_from, keep_named};
pub use render::{dot, mermaid};
pub use upgrades::{Edge, EdgeKind, UpgradeGraph};
