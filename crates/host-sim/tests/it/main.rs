//! The agent's loop against a scripted server: edge cases that a working server rarely shows.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agent_loop;
mod server;
