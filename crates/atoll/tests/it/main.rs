//! `atoll` as people run it: a process of its own, with a Postgres of its own where it needs one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod catalog;
mod installation;
mod mirror;
mod mirror_archive;
mod mirror_list;
mod registry;
mod terminal;
mod up;
