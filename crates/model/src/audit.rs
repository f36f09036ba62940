//! Records of changes by users.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::{ClusterId, HostId, InfraEnvId};
use crate::time::DateTime;

/// One change that a user requested, with its outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuditRecord {
    /// Ascends with time.
    pub id: i64,
    pub time: DateTime,
    pub user_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub org_id: String,
    /// Name of the operation in the description.
    pub operation: String,
    pub method: String,
    /// Without the query, which may hold secrets.
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infra_env_id: Option<InfraEnvId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_id: Option<HostId>,
    /// Status of the response; 499: the connection was closed before it, and the change may have been made.
    pub status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Uuid>,
}
