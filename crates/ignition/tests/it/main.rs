//! Ignition's own validator as a second reader of this crate's output.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod butane;
mod corpus;
mod merges;
