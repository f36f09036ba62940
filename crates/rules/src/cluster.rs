//! The state machine of a cluster: rules, triggers, effects, and the count of its hosts.

pub(crate) mod counting;
mod effects;
mod facts;
mod table;
#[cfg(test)]
mod tests;
mod trigger;

pub use effects::Effect;
pub use facts::Facts;
pub use table::{ClusterRule, TABLE};
pub use trigger::{On, Trigger, apply};

pub(crate) use effects::about;
pub(crate) use facts::Judged;
pub(crate) use trigger::refresh;
