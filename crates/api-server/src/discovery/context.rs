//! What a discovery ignition is made from beside its infra-env.

use std::time::Duration;

use secrecy::SecretString;

use crate::install::Mirrors;

/// What only the service and the hosts may know.
#[derive(Debug, Clone)]
pub struct Secrets {
    /// The infra-env's pull secret, as the user gave it.
    pub pull_secret: SecretString,
    /// Token by which agents authenticate; none with `AUTH_TYPE=none`.
    pub agent_token: Option<SecretString>,
}

/// Settings of the service that end up in a discovery image.
#[derive(Debug, Clone)]
pub struct Context {
    /// `SERVICE_BASE_URL`, with the name that agents call back.
    pub service_base_url: String,
    /// `AGENT_DOCKER_IMAGE`.
    pub agent_image: String,
    /// `SKIP_CERT_VERIFICATION`.
    pub insecure: bool,
    /// Content of `SERVICE_CA_CERT_PATH`.
    pub service_ca: Option<String>,
    /// Mirror configuration, when there is one.
    pub mirrors: Option<Mirrors>,
    /// `AGENT_TIMEOUT_START`.
    pub agent_start_timeout: Duration,
    /// `FORCE_INSECURE_POLICY_JSON`.
    pub insecure_policy: bool,
}

impl Default for Context {
    fn default() -> Self {
        Self {
            service_base_url: "http://127.0.0.1:8090".to_owned(),
            agent_image: String::new(),
            insecure: false,
            service_ca: None,
            mirrors: None,
            agent_start_timeout: Duration::from_mins(3),
            insecure_policy: false,
        }
    }
}
