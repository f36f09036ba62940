//! The controller of hosts, for clusters where no other one runs: BMCs are registered, hardware is inspected, power is
//! managed, and deleted hosts are switched off. It writes no disks, and says so in the records that ask for it.
//!
//! A reconciliation has a pure part, from a record to its intake and action, then with the observation of its BMC to a
//! verdict, and one that reads and writes. The states are those of [`host_state`](host_records::host_state).
//!
//! Invariants: a record that has not to change is not written; a password that was refused is not sent again until secret
//! or address change; of several controllers, one acts.

mod access;
mod action;
mod bmc_job;
mod claims;
mod hardware_details;
mod intake;
mod limits;
mod queue;
mod reconcile;
mod report;
mod run;
mod status_document;
mod timing;
mod verdict;

pub use report::{HostRecordChange, HostReport};
pub use run::HostController;
pub use timing::ControllerTiming;

#[cfg(test)]
mod tests;
