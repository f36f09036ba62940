//! A real etcd.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod etcd;
#[expect(dead_code, reason = "shared with the tests of replacements")]
mod servers;
mod wait;
