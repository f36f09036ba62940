//! The state machine of a cluster: rules, triggers, effects, and the count of its hosts.

pub(crate) mod counting;
mod effects;
mod facts;
mod table;
#[cfg(test)]
mod tests;
mod transition;
mod trigger;

pub use effects::Effect;
pub use facts::Facts;
pub use table::{ClusterRule, TABLE};
pub use transition::apply;
pub use trigger::{On, Trigger};

pub(crate) use facts::Judged;
pub(crate) use transition::refresh;
