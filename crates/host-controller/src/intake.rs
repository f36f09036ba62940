//! The record of a host as the controller takes it up, or the reason to leave it alone. Pure.

use serde_json::{Value, json};

use super::limits::{self, HostLimit};
use host_records::host_state::{HostFacts, ProvisioningState, UnknownState};
use host_records::{BareMetalHost, DecodeError};

/// The finalizer that keeps the record until its host is switched off. Source: baremetal-operator,
/// `BareMetalHostFinalizer`.
pub(super) const FINALIZER: &str = "baremetalhost.metal3.io";
/// The annotation of hosts that nothing is done with. Source: baremetal-operator, `PausedAnnotation`.
const PAUSED: &str = "baremetalhost.metal3.io/paused";

/// A host to reconcile.
#[derive(Debug, Clone)]
pub(super) struct HostIntake {
    pub(super) host: BareMetalHost,
    pub(super) state: ProvisioningState,
    /// Those of the record; a deployment that is beyond the controller is left out.
    pub(super) facts: HostFacts,
    /// The wish of the record that the controller cannot fulfil.
    pub(super) limit: Option<&'static HostLimit>,
}

/// The reason why nothing is done with a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum LeftAlone {
    #[error("it is paused by its annotation {PAUSED}")]
    Paused,
    /// Other finalizers keep it.
    #[error("it is deleted, and other finalizers keep its record")]
    Deleted,
    /// Without a deletion, such as of a backup.
    #[error("its state is {0}, and it is not deleted: delete the record, and create it again")]
    Undeleted(ProvisioningState),
    #[error("status.provisioning.state {0}, and its host is left alone")]
    UnknownState(UnknownState),
    #[error("{0}: correct the record")]
    Undecodable(DecodeError),
}

impl HostIntake {
    /// Errors: the record is left alone.
    pub(super) fn of(record: &Value) -> Result<Self, LeftAlone> {
        let host: BareMetalHost = decode(record).map_err(LeftAlone::Undecodable)?;
        if host.metadata.annotations.contains_key(PAUSED) {
            return Err(LeftAlone::Paused);
        }
        let status = host.status.as_ref();
        let state = status.map_or("", |status| status.provisioning.state.as_str());
        let state = state.parse().map_err(LeftAlone::UnknownState)?;
        let mut facts = HostFacts::of_record(&host);
        let limit = limits::of(state, &host, &facts);
        if let Some(limit) = limit {
            facts.deployment = limit.deployment;
        }
        let intake = Self {
            host,
            state,
            facts,
            limit,
        };
        if intake.facts.is_deleting && !intake.has_finalizer() {
            return Err(LeftAlone::Deleted);
        }
        if is_last(state) && !intake.facts.is_deleting {
            return Err(LeftAlone::Undeleted(state));
        }
        Ok(intake)
    }

    /// Whether the record is to be kept until its host is switched off, and is not yet.
    pub(super) fn wants_finalizer(&self) -> bool {
        self.facts.has_bmc && !self.facts.is_deleting && !self.has_finalizer()
    }

    fn has_finalizer(&self) -> bool {
        self.host
            .metadata
            .finalizers
            .iter()
            .any(|it| it == FINALIZER)
    }

    /// Metadata with the finalizer, or without it.
    pub(super) fn with_finalizer(&self, is_kept: bool) -> Value {
        let present = self.host.metadata.finalizers.iter().map(String::as_str);
        let others = present.filter(|it| *it != FINALIZER);
        let own = is_kept.then_some(FINALIZER);
        json!({ "finalizers": others.chain(own).collect::<Vec<_>>() })
    }

    /// The value of an annotation.
    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        let annotations = &self.host.metadata.annotations;
        annotations.get(key).map(String::as_str)
    }
}

/// Whether only deleted hosts have the state: no transition leads out of it.
fn is_last(state: ProvisioningState) -> bool {
    use ProvisioningState::{Deleting, PoweringOffBeforeDelete};
    matches!(state, Deleting | PoweringOffBeforeDelete)
}

/// Values are not repeated: annotations may hold anything.
fn decode(record: &Value) -> Result<BareMetalHost, DecodeError> {
    serde_path_to_error::deserialize(record).map_err(|error| {
        let field = error.path().to_string();
        let reason = match error.into_inner().to_string() {
            text if text.starts_with("missing field") => text,
            _ => "has another type than expected".to_owned(),
        };
        DecodeError { field, reason }
    })
}
