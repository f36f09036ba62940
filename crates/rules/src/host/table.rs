//! The state machine of a host, in two tables: event rules and refresh rules.

use model::host::HostStatus;

use super::effects::Effect;
use super::event_rules::EVENT_RULES;
use super::facts::Facts;
use super::refresh_rules::REFRESH_RULES;
use super::trigger::On;
use crate::table;

/// A row of the host's table.
pub type Rule = table::Rule<HostStatus, On, Facts, Effect>;

/// Every transition of a host, and every refusal.
pub static TABLE: &[&[Rule]] = &[EVENT_RULES, REFRESH_RULES];

/// Statuses of a host in a cluster before its installation.
pub(super) const EARLY: &[HostStatus] = &[
    HostStatus::Discovering,
    HostStatus::Insufficient,
    HostStatus::Known,
    HostStatus::PendingForInput,
    HostStatus::Disconnected,
];

/// The text of a host that lacks nothing.
pub(super) const READY: &str = "The host is ready to be installed";
/// The text of a host that has said nothing yet.
pub(super) const NO_INVENTORY: &str = "Waiting for the host to send its inventory";

/// The text of a host that lost its boot medium.
pub(super) fn media_text(_: &Facts) -> String {
    "The host cannot read its boot medium any more; attach the discovery image again and reboot it"
        .to_owned()
}
