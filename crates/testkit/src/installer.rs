//! A stand-in for the platform's installer: same verbs, same files, same strictness, nothing installed.
//!
//! It refuses what the real one refuses, consumes what the real one consumes, and what it writes is really
//! ignition, really certificates. It shares no code with what it stands opposite to: records, checks and
//! ignition files are its own, so that a mistake on one side shows on the other.

mod check;
mod config;
mod create;
mod ignition_files;
mod manifests;
mod pki;
mod state;
#[cfg(test)]
mod tests;

pub use create::{Failure, Target, create};

/// How an installer run ends when it cannot do what it was asked.
pub(crate) fn fail<T>(text: impl Into<String>) -> Result<T, Failure> {
    Err(Failure(text.into()))
}
