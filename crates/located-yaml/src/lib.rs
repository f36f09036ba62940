//! YAML and JSON with the line and column of every value, so that messages about a file name the place of a mistake.
//!
//! Two dialects, each with one reader: the same text means another thing in [`v1_1`], which Kubernetes and OLM read, than
//! in [`v1_2`], which Butane, the installer and nmstate read. [`portable`] writes YAML that means the same in both.
//!
//! Texts in, values out: no files, no network, no records of anything.

mod error;
mod parser;
pub mod portable;
mod position;
pub mod text;
pub mod v1_1;
pub mod v1_2;

pub use self::error::DocumentError;
pub use self::position::Position;
