//! The state machine of a host: rules, triggers, effects, and the first registration.

mod effects;
mod event_rules;
mod facts;
mod refresh_rules;
mod registration;
mod table;
#[cfg(test)]
mod tests;
mod trigger;

pub use effects::Effect;
pub use facts::{CheckOutcome, Facts, ProgressReport, StageMove};
pub use registration::{new_host, registered};
pub use table::{HostRule, TABLE};
pub use trigger::{On, Trigger, apply};

pub(crate) use effects::about;
pub(crate) use facts::{ClusterInputs, installation_disk, is_fully_truncated, limit_of, older};
pub(crate) use registration::is_day2;
pub(crate) use trigger::refresh;
