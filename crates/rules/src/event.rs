//! Events that a decision emits.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use model::events::{EventCategory, EventSeverity};
use model::ids::{ClusterId, HostId, InfraEnvId};
use serde_json::Value;
use uuid::Uuid;

use crate::snapshot::Snapshot;
use crate::snapshot::host_state::HostState;

/// An agent restarts from the image that it was upgraded to.
pub(crate) const UPGRADE_AGENT_FINISHED: &str = "upgrade_agent_finished";
/// An agent could not pull the image that it is upgraded to.
pub(crate) const UPGRADE_AGENT_FAILED: &str = "upgrade_agent_failed";

/// An agent sent an inventory that cannot be read.
pub(crate) const INVENTORY_UNREADABLE: &str = "host_inventory_unreadable";

/// Rate limits by the name of the event: the shortest time between two events of a host. An agent that fails to upgrade
/// retries every minute, and of two machines with one id the inventories alternate.
/// Source: assisted-service, internal/events/event.go, eventLimits.
const RATE_LIMITS: [(&str, TimeDelta); 3] = [
    (INVENTORY_UNREADABLE, TimeDelta::minutes(5)),
    (UPGRADE_AGENT_FINISHED, TimeDelta::hours(1)),
    (UPGRADE_AGENT_FAILED, TimeDelta::hours(1)),
];

/// The shortest time between two events of that name about a host.
pub fn rate_limit(name: &str) -> Option<TimeDelta> {
    let mut limits = RATE_LIMITS.into_iter();
    limits.find_map(|(limited, limit)| (limited == name).then_some(limit))
}

/// An event to be stored; the caller adds the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// Name in the catalogue, for instance `host_status_updated`.
    pub name: &'static str,
    /// Severity.
    pub severity: EventSeverity,
    /// Category: user, except of measurements.
    pub category: EventCategory,
    /// One sentence for users.
    pub message: String,
    /// The cluster it is about.
    pub cluster_id: Option<ClusterId>,
    /// The host it is about.
    pub host_id: Option<HostId>,
    /// The infra-env it is about.
    pub infra_env_id: Option<InfraEnvId>,
    /// The request that caused it, where one transaction serves several; set by the caller.
    pub request_id: Option<Uuid>,
    /// The values inside the message, by the catalogue's property names.
    pub props: BTreeMap<&'static str, Value>,
}

impl NewEvent {
    /// An event without subject.
    pub fn new(name: &'static str, severity: EventSeverity, message: impl Into<String>) -> Self {
        Self {
            name,
            severity,
            category: EventCategory::User,
            message: message.into(),
            cluster_id: None,
            host_id: None,
            infra_env_id: None,
            request_id: None,
            props: BTreeMap::new(),
        }
    }

    /// Sets the cluster.
    #[must_use]
    pub fn cluster(mut self, id: ClusterId) -> Self {
        self.cluster_id = Some(id);
        self
    }

    /// Sets the host, and the cluster it is bound to.
    #[must_use]
    pub fn host(mut self, host: &model::host::Host) -> Self {
        self.host_id = Some(host.id);
        self.infra_env_id = Some(host.infra_env_id);
        self.cluster_id = host.cluster_id;
        self
    }

    /// Sets the infra-env.
    #[must_use]
    pub fn infra_env(mut self, id: InfraEnvId) -> Self {
        self.infra_env_id = Some(id);
        self
    }

    /// Adds a property of the message.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a value that is at hand need not be borrowed"
    )]
    pub fn prop(mut self, name: &'static str, value: impl ToString) -> Self {
        self.props.insert(name, value.to_string().into());
        self
    }

    /// Adds a number as a property.
    #[must_use]
    pub fn number(mut self, name: &'static str, value: i64) -> Self {
        self.props.insert(name, value.into());
        self
    }
}

/// An event about the host whose message starts with its name.
pub(crate) fn about_host(
    host: &HostState,
    name: &'static str,
    severity: EventSeverity,
    message: &str,
) -> NewEvent {
    let host_name = host.name();
    NewEvent::new(name, severity, format!("Host {host_name}: {message}"))
        .host(&host.record)
        .prop("host_name", host_name)
}

/// An event about the cluster.
pub(crate) fn about_cluster(
    snapshot: &Snapshot,
    name: &'static str,
    severity: EventSeverity,
    message: &str,
) -> NewEvent {
    NewEvent::new(
        name,
        severity,
        format!("Cluster {}: {message}", snapshot.cluster.name),
    )
    .cluster(snapshot.cluster.id)
}
