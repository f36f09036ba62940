//! Explanations: the causes that keep a cluster, or the unbound hosts of an infra-env, from being ready or installed.
//!
//! No other installer has them: every member is of this API alone.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::InfraEnvId;
use crate::time::DateTime;
use crate::wire::{is_zero, null_as_default, wire_enum};

/// Why a cluster, or the unbound hosts of an infra-env, are not ready or stuck.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Explanation {
    /// The cluster or the infra-env.
    pub subject: ExplainedSubject,
    /// Status of the cluster; absent for an infra-env.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// The worst of its causes.
    pub outcome: ExplanationOutcome,
    /// Causes, those to be removed first at the beginning.
    #[serde(deserialize_with = "null_as_default")]
    pub causes: Vec<Cause>,
    /// Number of further causes beyond the limit.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted_causes: i64,
}

/// One cause.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cause {
    pub kind: CauseKind,
    /// Id of the validation, name of the stage, or the status.
    pub id: String,
    pub status: CauseStatus,
    pub subject: ExplainedSubject,
    /// Start of the cause, as far as it is recorded; else of the subject's present status.
    pub since: DateTime,
    /// Time after which it counts as overdue. Units: seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_seconds: Option<i64>,
    /// The value that was found.
    pub observed: String,
    /// The value that would pass.
    pub required: String,
    /// The remedy, as one sentence.
    pub fix: String,
}

/// The object that a cause or an explanation is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExplainedSubject {
    pub kind: SubjectKind,
    pub id: Uuid,
    pub name: String,
    /// The infra-env of a host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infra_env_id: Option<InfraEnvId>,
}

/// A page of explanations: subjects without problems are left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExplanationList {
    #[serde(deserialize_with = "null_as_default")]
    pub items: Vec<Explanation>,
    /// Value of `after` for the next page; absent on the last one. A page may be empty and have a next one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub next: String,
}

wire_enum! {
    /// Values of `ExplanationOutcome`, the worst last.
    pub enum ExplanationOutcome {
        Settled = "settled",
        InProgress = "in-progress",
        NotReady = "not-ready",
        Stuck = "stuck",
    }
}

wire_enum! {
    /// Values of `CauseKind`.
    pub enum CauseKind {
        Validation = "validation",
        Stage = "stage",
        State = "state",
    }
}

wire_enum! {
    /// Values of `CauseStatus`.
    pub enum CauseStatus {
        Failure = "failure",
        Error = "error",
        Pending = "pending",
        Waiting = "waiting",
        Overdue = "overdue",
    }
}

wire_enum! {
    /// Values of `SubjectKind`.
    pub enum SubjectKind {
        Cluster = "cluster",
        Host = "host",
        InfraEnv = "infra-env",
    }
}
