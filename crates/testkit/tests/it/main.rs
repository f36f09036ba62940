//! Content of the testkit against the crates that it is made for.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[cfg(target_env = "gnu")]
mod campaign;
mod prepare;
mod registry;
#[cfg(target_env = "gnu")]
mod userland;
