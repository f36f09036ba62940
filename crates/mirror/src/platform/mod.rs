//! Releases of the platform: which ones a set names, what they consist of, and who signed them.

mod across;
mod graph;
mod keyring;
mod payload;
mod select;
mod settings;
mod signature;
mod span;
mod updates;
mod wanted;

pub use graph::{Graph, Release};
pub use keyring::Keyring;
pub use settings::{Sources, public_signature_stores};
pub use signature::Signatures;
pub use updates::Updates;
pub use wanted::{Releases, releases};
