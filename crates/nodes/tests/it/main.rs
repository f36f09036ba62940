//! Replacements of control nodes against a real etcd.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod etcd;
mod load;
mod platform;
mod replace;
mod servers;
mod wait;
