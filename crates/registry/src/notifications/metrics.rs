//! Metrics of notifications.

use metrics::{describe_counter, describe_gauge};

pub(super) const EVENTS: &str = "registry_notifications_events_total";
pub(super) const PENDING: &str = "registry_notifications_pending_total";
pub(super) const STATUSES: &str = "registry_notifications_status_total";

/// Describes them for the exporter.
pub(super) fn describe() {
    describe_counter!(EVENTS, "Events by outcome");
    describe_gauge!(
        PENDING,
        "Bytes of events that an endpoint has not taken yet"
    );
    describe_counter!(STATUSES, "Answers of endpoints");
}
