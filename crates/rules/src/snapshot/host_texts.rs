//! Texts of a host's record, parsed.

use std::sync::Arc;

use model::steps::{ApiVipConnectivityResponse, DomainResolutionResponse, NtpSource};
use serde::de::DeserializeOwned;

use crate::snapshot::host_state::HostState;
use crate::snapshot::networks::{self, Address};
use crate::snapshot::reach::Reaches;

/// A host's texts, each parsed once.
#[derive(Debug, Clone, Default)]
pub struct HostTexts {
    pub(crate) addresses: Vec<Address>,
    pub(crate) reaches: Option<Arc<Reaches>>,
    pub(crate) domains: Option<DomainResolutionResponse>,
    pub(crate) ntp: Option<Vec<NtpSource>>,
    pub(crate) api_vip: Option<ApiVipConnectivityResponse>,
}

impl HostTexts {
    /// Parses the texts of a host's record; a malformed text counts as absent.
    pub fn of(host: &HostState) -> Self {
        let record = &host.record;
        Self {
            addresses: host
                .inventory
                .as_deref()
                .map_or_else(Vec::new, networks::addresses),
            reaches: host.reaches(),
            domains: parse(&record.domain_name_resolutions),
            ntp: parse(&record.ntp_sources),
            api_vip: parse(&record.api_vip_connectivity),
        }
    }
}

pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Option<T> {
    if text.is_empty() {
        return None;
    }
    serde_json::from_str(text).ok()
}
