//! Ignition's own validator as a second reader of what this crate writes.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod corpus;
