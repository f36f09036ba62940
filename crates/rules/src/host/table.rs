//! The host's table, in two parts: what happens to a host, and what a look at it finds.

use model::host::HostStatus;

use super::effects::Effect;
use super::facts::Facts;
use super::rows_happening::HAPPENING;
use super::rows_looking::LOOKING;
use super::trigger::On;
use crate::table;

/// A row of the host's table.
pub type Rule = table::Rule<HostStatus, On, Facts, Effect>;

/// Every way in which a host's status changes, and what is refused.
pub static TABLE: &[&[Rule]] = &[HAPPENING, LOOKING];

/// Statuses in which a host of a cluster is still being looked at.
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
