//! Results of declarative changes: the differences between files of the agent-based installer and the stored records.

use serde::{Deserialize, Serialize};

use crate::ids::{ClusterId, InfraEnvId};
use crate::wire::{is_false, null_as_default};

/// Result of applying `install-config.yaml` and `agent-config.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AppliedDeclaration {
    /// Absent for an infra-env that a dry run would create.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infra_env_id: Option<InfraEnvId>,
    /// Absent for a cluster that a dry run would create.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    /// The cluster or the infra-env is new.
    #[serde(skip_serializing_if = "is_false")]
    pub created: bool,
    /// Changes in the order of the files; none if they agree with the records.
    #[serde(deserialize_with = "null_as_default")]
    pub changes: Vec<DeclaredChange>,
    /// Members whose effect differs from the agent-based installer's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One changed member of a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeclaredChange {
    /// Path of the member, after the name of its file.
    pub field: String,
    /// Value before, as text; secrets are not shown.
    pub before: String,
    /// Value after.
    pub after: String,
}
