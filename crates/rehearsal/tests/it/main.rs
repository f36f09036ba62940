//! Rehearsals against a server that responds from a script.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod play;
mod server;
