//! `atoll up` as people run it: a process of its own, with a Postgres of its own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod installation;
mod up;
