//! Clusters: their state machine (rules, triggers, effects), creation, changes, and the refresh of all that is derived.

pub(crate) mod counting;
pub mod create;
mod effects;
pub(crate) mod facts;
pub mod ignition_endpoint;
pub mod preflight;
pub mod refresh;
mod request;
pub(crate) mod role_assignment;
mod table;
#[cfg(test)]
mod tests;
pub(crate) mod transition;
mod trigger;
pub mod update;
pub mod usage;

pub use effects::Effect;
pub use facts::Facts;
pub use request::apply;
pub use table::{ClusterRule, TABLE};
pub use trigger::{On, Trigger};
