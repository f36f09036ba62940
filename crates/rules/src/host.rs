//! The state machine of a host: rules, triggers, effects, and the first registration.

mod binding;
mod effects;
mod event_rules;
mod facts;
mod refresh_rules;
mod registration;
mod rule;
mod table;
#[cfg(test)]
mod tests;
mod transition;
mod trigger;

pub use binding::{bind, leave, unbind};
pub use effects::Effect;
pub use facts::{Facts, ProgressReport, StageMove};
pub use registration::{check_replaced, deregistered, new_host, registered};
pub use rule::HostRule;
pub use table::TABLE;
pub use transition::apply;
pub use trigger::{On, Trigger};

pub(crate) use facts::{ClusterInputs, is_fully_truncated};
pub(crate) use registration::is_day2;
pub(crate) use transition::refresh;
