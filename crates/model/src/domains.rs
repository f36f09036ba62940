//! Managed domains.
//!
//! Source: the installer API description (wire names, presence rules).

use serde::{Deserialize, Serialize};

use crate::wire::wire_enum;

/// `managed-domain` of the installer API: a base domain in which DNS records are managed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ManagedDomain {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub domain: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<DnsProvider>,
}

wire_enum! {
    /// Values of `provider`.
    pub enum DnsProvider {
        Route53 = "route53",
    }
}
