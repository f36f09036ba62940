//! Makes logins to BMCs: credentials, trust in certificates, times.

use std::time::Duration;

use net::resolve::Resolver;
use net::trust;
use reqwest::redirect::Policy;

use super::access::BmcAccess;
use super::bmc::Bmc;
use super::error::BmcError;
use super::http::RedfishHttp;
use super::networks::BmcNetworks;
use super::session::RedfishSession;
use super::timing::RedfishTiming;

/// Idle connections are closed before most BMCs do it.
const IDLE: Duration = Duration::from_secs(5);

/// Makes logins. Clones share their trusted certificates.
#[derive(Debug, Clone)]
pub struct RedfishConnector {
    verifying: rustls::ClientConfig,
    trusting: rustls::ClientConfig,
    pub(super) timing: RedfishTiming,
    /// Networks of BMCs; without them, every address is one of a BMC.
    networks: Option<BmcNetworks>,
}

impl RedfishConnector {
    /// Trusts the system's certificates and those in `ca_pem`.
    ///
    /// Errors: Internal – `ca_pem` holds no certificate.
    pub fn new(ca_pem: Option<&[u8]>, timing: RedfishTiming) -> Result<Self, BmcError> {
        let config = |is_unchecked: bool| {
            let config = trust::client_config(ca_pem, is_unchecked);
            config.map_err(|error| BmcError::Internal {
                doing: "reading the trusted certificates",
                reason: error.chain(),
            })
        };
        Ok(Self {
            verifying: config(false)?,
            trusting: config(true)?,
            timing,
            networks: None,
        })
    }

    /// Connects to addresses in `networks` alone. Before the other side is known as a BMC, all failures have the same
    /// text, which reveals nothing of a network; the log has the reason.
    #[must_use]
    pub fn within(mut self, networks: BmcNetworks) -> Self {
        self.networks = Some(networks);
        self
    }

    /// The same trust with other times.
    #[must_use]
    pub fn with_timing(mut self, timing: RedfishTiming) -> Self {
        self.timing = timing;
        self
    }

    /// Its times.
    pub fn timing(&self) -> &RedfishTiming {
        &self.timing
    }

    /// Logs in.
    ///
    /// Errors: any but those of procedures.
    pub async fn connect(&self, access: &BmcAccess) -> Result<Bmc, BmcError> {
        let session = self.open(access).await.map_err(|error| {
            if self.networks.is_none() {
                return error;
            }
            let bmc = access.endpoint.origin().as_str();
            tracing::info!(bmc, %error, "no BMC at this address");
            BmcError::NoBmc
        })?;
        Bmc::log_in(session, access).await
    }

    /// Reads the root of the service.
    async fn open(&self, access: &BmcAccess) -> Result<RedfishSession, BmcError> {
        let tls = if access.verifies_certificate {
            &self.verifying
        } else {
            &self.trusting
        };
        let origin = access.endpoint.origin();
        // A client of its own: connections end with it. Credentials pass no proxy.
        let mut client = reqwest::Client::builder()
            .connect_timeout(self.timing.connect)
            .dns_resolver(Resolver::system())
            .redirect(Policy::none())
            .no_proxy()
            .http1_only()
            .pool_max_idle_per_host(1)
            .pool_idle_timeout(IDLE)
            .tls_backend_preconfigured(tls.clone());
        if let Some(networks) = &self.networks {
            let addresses = networks.resolve(origin).await;
            let addresses = addresses.map_err(|reason| BmcError::Unreachable {
                request: "GET /redfish/v1/".to_owned(),
                reason,
            })?;
            // The checked addresses are used: a later answer of the name server is not.
            let host = origin.host_str().unwrap_or_default();
            client = client.resolve_to_addrs(host, &addresses);
        }
        let client = client.build().map_err(|error| BmcError::Internal {
            doing: "building the HTTP client",
            reason: model::error::chain(&error),
        })?;
        let http = RedfishHttp {
            client,
            origin: origin.clone(),
            timeout: self.timing.answer,
        };
        RedfishSession::open(http, access.credentials.clone(), self.timing.clone()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_authorities_are_refused() {
        let made = RedfishConnector::new(Some(b"no PEM"), RedfishTiming::default());
        assert!(matches!(made, Err(BmcError::Internal { .. })));
    }
}
