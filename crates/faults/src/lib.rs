//! For tests: file systems that fail once, at any call, and the campaign that tries them all.
//!
//! A store's driver runs in a process of its own, with a shim between it and the kernel. The production code has
//! no hooks, and knows nothing of this.

mod campaign;
mod shim;
#[cfg(test)]
mod tests;

pub use campaign::{Campaign, DONE, FOLDER, Findings};
pub use shim::{Fault, Shim};
