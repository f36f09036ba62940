//! Hosts: their state machine (rules, triggers, effects), registration, inventory, progress and timeouts.

mod binding;
pub(crate) mod cluster_ignition;
mod effects;
mod event_rules;
pub mod expected_hosts;
mod facts;
pub mod heartbeat;
pub(crate) mod identity;
pub mod images;
pub mod inventory;
pub mod metric_events;
pub mod progress;
mod refresh_rules;
mod registration;
pub(crate) mod retry;
pub(crate) mod role_support;
mod rule;
mod table;
#[cfg(test)]
mod tests;
pub(crate) mod timeout;
mod transition;
mod trigger;

pub use binding::{bind, leave, unbind};
pub use effects::Effect;
pub use facts::{Facts, ProgressReport, StageMove};
pub use registration::{check_replaced, deregistered, new_host, registered};
pub use retry::retry;
pub use rule::HostRule;
pub use table::TABLE;
pub use transition::apply;
pub use trigger::{On, Trigger};

pub(crate) use facts::{ClusterInputs, is_fully_truncated};
pub(crate) use registration::is_day2;
pub(crate) use transition::refresh;
