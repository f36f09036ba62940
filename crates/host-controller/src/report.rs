//! Reports of reconciliations: changes of one host, for the log and for people.

use super::verdict::HostNext;
use redfish::PowerState;

/// A change of a host, or of its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostRecordChange {
    /// Of the state.
    State {
        /// As in the record; `created` for a new host.
        from: String,
        /// As in the record; `removed` for a record that was released.
        to: String,
        /// Name of the rule.
        rule: &'static str,
    },
    /// Of the power.
    Power {
        /// Before.
        from: PowerState,
        /// Now.
        to: PowerState,
    },
    /// Another error.
    Error {
        /// As `registration error`.
        kind: String,
        /// The reason, and the remedy.
        message: String,
    },
    /// An error is over; its kind.
    Mended(String),
}

/// A reconciliation of one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostReport {
    /// Name of the host.
    pub host: String,
    /// Changes, in their order.
    pub changes: Vec<HostRecordChange>,
    /// The error that its record has now.
    pub error: Option<String>,
    /// The reason why its record was left alone, or not looked at.
    pub note: Option<String>,
    pub(super) next: HostNext,
    /// Version of the record that was read or written last.
    pub(super) version: String,
}

impl HostReport {
    pub(super) fn new(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            changes: Vec::new(),
            error: None,
            note: None,
            next: HostNext::OnChange,
            version: String::new(),
        }
    }

    /// Logs the changes, and a note that is not that of the previous report.
    pub(super) fn log(&self, previous_note: &str) {
        let host = &self.host;
        for change in &self.changes {
            match change {
                HostRecordChange::State { from, to, rule } => {
                    tracing::info!(host, from, to, rule, "state of a host changed");
                }
                HostRecordChange::Power { from, to } => {
                    tracing::info!(host, %from, %to, "power of a host changed");
                }
                HostRecordChange::Error { kind, message } => {
                    tracing::warn!(host, kind, message, "a host has an error");
                }
                HostRecordChange::Mended(kind) => {
                    tracing::info!(host, kind, "the error of a host is mended");
                }
            }
        }
        if let Some(note) = self.note.as_ref().filter(|note| *note != previous_note) {
            tracing::warn!(host, note, "a host was left alone");
        }
    }
}

impl std::fmt::Display for HostRecordChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::State { from, to, rule } => write!(f, "state: {from} → {to} ({rule})"),
            Self::Power { from, to } => write!(f, "power: {from} → {to}"),
            Self::Error { kind, message } => write!(f, "{kind}: {message}"),
            Self::Mended(kind) => write!(f, "{kind}: mended"),
        }
    }
}
