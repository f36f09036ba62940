//! Events of clusters, hosts and infra-envs.
//!
//! Source: the installer API description (wire names, presence rules).

use crate::wire::wire_enum;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::{ClusterId, HostId, InfraEnvId};
use crate::time::DateTime;

/// `event` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_id: Option<HostId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infra_env_id: Option<InfraEnvId>,
    pub severity: EventSeverity,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<EventCategory>,
    pub message: String,
    pub event_time: DateTime,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Uuid>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub props: String,
}

wire_enum! {
    /// Values of `EventSeverity`.
    pub enum EventSeverity {
        Info = "info",
        Warning = "warning",
        Error = "error",
        Critical = "critical",
    }
}

wire_enum! {
    /// Values of `EventCategory`.
    pub enum EventCategory {
        User = "user",
        Metrics = "metrics",
    }
}
