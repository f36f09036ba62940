//! The state machine of a cluster: rules, triggers, effects, and the count of its hosts.

pub(crate) mod counting;
mod effects;
pub(crate) mod facts;
mod request;
mod table;
#[cfg(test)]
mod tests;
pub(crate) mod transition;
mod trigger;

pub use effects::Effect;
pub use facts::Facts;
pub use request::apply;
pub use table::{ClusterRule, TABLE};
pub use trigger::{On, Trigger};
