//! Inputs of a discovery ignition beside its infra-env.

use std::time::Duration;

use rules::versions::offer::NMSTATE_SERVICE_FROM;
use secrecy::SecretString;

use preparation::SiteMirrors;

/// Secrets in a discovery ignition.
#[derive(Debug, Clone)]
pub struct DiscoverySecrets {
    /// The infra-env's pull secret, unchanged.
    pub pull_secret: SecretString,
    /// Bearer token of agents; none with `AUTH_TYPE=none`.
    pub agent_token: Option<SecretString>,
}

/// Settings of the service in a discovery ignition.
#[derive(Debug, Clone)]
pub struct DiscoveryOptions {
    /// `SERVICE_BASE_URL`: address of the API for agents.
    pub service_base_url: String,
    /// `SKIP_CERT_VERIFICATION`.
    pub insecure: bool,
    /// Content of `SERVICE_CA_CERT_PATH`.
    pub service_ca: Option<String>,
    /// Registry mirrors.
    pub mirrors: SiteMirrors,
    /// `AGENT_TIMEOUT_START`.
    pub agent_start_timeout: Duration,
    /// `FORCE_INSECURE_POLICY_JSON`.
    pub insecure_policy: bool,
    /// `MIN_VERSION_FOR_NMSTATE_SERVICE`.
    pub nmstate_service_from: String,
}

impl Default for DiscoveryOptions {
    fn default() -> Self {
        Self {
            service_base_url: "http://127.0.0.1:8090".to_owned(),
            insecure: false,
            service_ca: None,
            mirrors: SiteMirrors::default(),
            agent_start_timeout: Duration::from_mins(3),
            insecure_policy: false,
            nmstate_service_from: NMSTATE_SERVICE_FROM.to_owned(),
        }
    }
}
