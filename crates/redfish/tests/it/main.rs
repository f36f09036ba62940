//! BMCs: simulated ones, an emulator, and hostile ones.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod faults;
mod figures;
mod hostile;
mod lab;
mod login;
mod many;
mod media;
mod operations;
mod secrets;
mod sushy;
