//! A fake of the platform's installer: same commands, same files, same strictness, nothing installed.
//!
//! It refuses and consumes the same input as the real one, and writes real ignition and certificates. It shares no code
//! with the API server: records, checks and ignition files are its own, so that a mistake on one side shows on the
//! other.

mod check;
mod config;
mod create;
mod files;
mod ignition_files;
mod manifests;
mod pki;
mod state;
#[cfg(test)]
mod tests;

pub use create::{CreateTarget, create};
pub use files::InstallerFailure;
