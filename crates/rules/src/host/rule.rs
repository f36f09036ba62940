//! A rule of a host, and the statuses and texts that both tables share.

use model::host::HostStatus;

use super::effects::Effect;
use super::facts::Facts;
use super::trigger::On;
use crate::table;

/// A rule of the host's state machine.
pub type HostRule = table::TransitionRule<HostStatus, On, Facts, Effect>;

/// Statuses of a host in a cluster before its installation.
pub(super) const EARLY: &[HostStatus] = &[
    HostStatus::Discovering,
    HostStatus::Insufficient,
    HostStatus::Known,
    HostStatus::PendingForInput,
    HostStatus::Disconnected,
];

/// Status text of a host without failed validations.
pub(super) const READY: &str = "The host is ready to be installed";
/// Status text before the first inventory.
pub(super) const NO_INVENTORY: &str = "Waiting for the host to send its inventory";

/// Status text of a host without agent that leaves its cluster.
pub(super) const BOOT_TO_LEAVE: &str =
    "To complete the unbinding, boot the host from the discovery image again";

/// Status text of a host without boot medium.
pub(super) fn media_text(_: &Facts) -> String {
    "The host cannot read its boot medium any more; attach the discovery image again and reboot it"
        .to_owned()
}
