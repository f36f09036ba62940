//! Connections of simulated machines: one pool for all simulations of a process.
//!
//! A machine's connection is a file, and its other end is one more when the server runs in the same process. Machines
//! share a few connections, so that thousands of them do not need thousands of files.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::image::BootConfig;
use crate::{Error, Stats};

/// Requests at a time without another limit. Units: requests.
const LIMIT: usize = 512;
/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_mins(2);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections that simulations share, with the statistics of their requests.
#[derive(Debug)]
pub struct Connections {
    /// Durations and failures of all requests.
    pub stats: Stats,
    limit: usize,
    permits: Semaphore,
    /// One client for each trust in servers: a client has the pool of connections.
    clients: Mutex<Vec<(Trust, reqwest::Client)>>,
}

/// The proof that is asked of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Trust {
    is_blind: bool,
    ca_pem: Option<String>,
}

impl Default for Connections {
    fn default() -> Self {
        Self::new(LIMIT)
    }
}

impl Connections {
    /// Connections for at most `limit` requests at a time; others wait in the order of their arrival.
    pub fn new(limit: usize) -> Self {
        Self {
            stats: Stats::default(),
            limit,
            permits: Semaphore::new(limit),
            clients: Mutex::default(),
        }
    }

    /// Waits until a request may be sent; it may use a connection until the permit is dropped.
    pub async fn permit(&self) -> Option<SemaphorePermit<'_>> {
        // Never closed, so that a permit always comes.
        self.permits.acquire().await.ok()
    }

    /// The client of machines with a boot configuration.
    ///
    /// Errors: `Client` – the CA certificates cannot be used.
    pub(crate) fn client(&self, boot: &BootConfig) -> Result<reqwest::Client, Error> {
        let trust = Trust {
            // Also for plain HTTP: a bare machine has no root certificates, and the builder fails without any.
            is_blind: boot.insecure || boot.url.starts_with("http://"),
            ca_pem: boot.ca_pem.clone(),
        };
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = clients.iter().find(|(known, _)| *known == trust) {
            return Ok(client.clone());
        }
        let client = self.build(&trust).map_err(|source| Error::Client {
            url: boot.url.clone(),
            source,
        })?;
        clients.push((trust, client.clone()));
        Ok(client)
    }

    fn build(&self, trust: &Trust) -> Result<reqwest::Client, reqwest::Error> {
        // The embedding program may have set the default provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_max_idle_per_host(self.limit);
        if trust.is_blind {
            builder = builder.tls_danger_accept_invalid_certs(true);
        }
        if let Some(pem) = &trust.ca_pem {
            let certificates = reqwest::Certificate::from_pem_bundle(pem.as_bytes())?;
            builder = builder.tls_certs_only(certificates);
        }
        builder.build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_with_the_same_trust_share_a_client() {
        let connections = Connections::default();
        let boot = |url: &str, insecure: bool| BootConfig {
            url: url.to_owned(),
            infra_env_id: uuid::Uuid::new_v4(),
            agent_version: String::new(),
            insecure,
            ca_pem: None,
            token: None,
        };
        for (url, insecure) in [
            ("http://a", false),
            ("http://b", false),
            ("https://a", true),
        ] {
            connections.client(&boot(url, insecure)).unwrap();
        }
        assert_eq!(connections.clients.lock().unwrap().len(), 1);
    }
}
