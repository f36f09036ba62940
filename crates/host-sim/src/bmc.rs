//! Simulated BMCs: Redfish services of real server families, thousands in one process, with faults on demand.
//!
//! A [`BmcRack`] listens once; each BMC has an address of its own on loopback, as each real one has an address of its own.
//! Tests and rehearsals read the state of a [`SimulatedBmc`] directly; a hook learns the boot source of a host.
//! Families are rows of [`BMC_PROFILES`]: their differences are those that peers report, each with its source.

mod access;
mod actions;
mod answer;
mod authority;
mod documents;
mod fault;
mod host;
mod links;
mod profile;
mod rack;
mod requests;
mod simulated;
mod state;
mod storage;

pub use fault::{BmcFault, BmcFaultRule};
pub use host::BmcHost;
pub use profile::{BMC_PROFILES, BmcProfile};
pub use rack::{BmcRack, BmcRackPlan, MAX_BMCS};
pub use simulated::{BmcBoot, BmcBootHook, BmcPace, SimulatedBmc};
pub use state::{
    BmcBootSource, BmcRequestRecord, CredentialUse, SimulatedOverride, SimulatedPower,
};
