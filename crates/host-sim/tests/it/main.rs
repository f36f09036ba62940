//! The agent's loop against a scripted server: the edges that a working server seldom shows.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agent_loop;
mod server;
