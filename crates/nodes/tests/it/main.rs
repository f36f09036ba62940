//! Replacements of control nodes against a real etcd, and BMCs against simulated ones and an emulator.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod etcd;
mod hardware;
mod load;
mod platform;
mod redfish;
mod replace;
mod servers;
mod wait;
