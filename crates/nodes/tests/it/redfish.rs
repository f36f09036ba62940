//! The Redfish client against simulated BMCs of all families, and against sushy-tools.

mod faults;
mod figures;
mod hostile;
pub(crate) mod lab;
mod login;
mod many;
mod media;
mod operations;
mod secrets;
mod sushy;
