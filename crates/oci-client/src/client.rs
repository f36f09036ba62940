//! The client side of the distribution protocol.
//!
//! Requests are retried where that is safe, logins follow challenges, bodies are streamed.

mod access;
mod addresses;
mod body;
mod challenge;
mod download;
mod error;
mod failover;
mod identity;
mod layout;
mod list;
mod origin;
mod pull;
mod push;
mod send;
mod source;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use model::Error;
use reqwest::header::HeaderValue;

use crate::layout::Lists;
use crate::{Credentials, Mirrors};
use addresses::Scope;
use net::redirect;
use net::resolve::Resolver;
use net::trust::{self, Unchecked};
use oci::Registry;

pub use identity::ClientIdentity;
pub use list::referrers_tag;
pub use push::Provided;
pub use source::{BlobSource, RemoteBlob, WebBlob, WebPart};

/// Maximum attempts of a request.
const ATTEMPTS: u32 = 5;
/// Timeout of a connection: long enough for a busy registry.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Idle timeout of a response.
const READ_TIMEOUT: Duration = Duration::from_mins(1);

/// Options of a client.
#[derive(Debug, Clone, Default)]
pub struct ClientOptions {
    /// Logins for registries.
    pub credentials: Credentials,
    /// Certificates, as PEM, that are trusted besides the system's.
    pub ca_pem: Option<Vec<u8>>,
    /// Certificate of this client, for registries that request one.
    pub identity: Option<ClientIdentity>,
    /// Accept any certificate, and plain HTTP from a registry without TLS.
    pub insecure: bool,
    /// The same for single registries: hosts with their ports. Any certificate is accepted on all ports of such a host.
    pub insecure_registries: BTreeSet<String>,
    /// Use plain HTTP only.
    pub plain_http: bool,
    /// Mirrors for reads; writes go to the registry itself.
    pub mirrors: Mirrors,
    /// The caller's flag or setting for plain HTTP, for errors about registries without TLS.
    pub plain_http_remedy: Option<&'static str>,
    /// Maximum attempts of a request; by default, with patience. With one attempt, interrupted bodies are not resumed.
    pub attempts: Option<u32>,
}

/// A client of registries, and of image layouts in their place. Clones share connections and logins.
#[derive(Debug, Clone)]
pub struct Client(Arc<ClientInner>);

#[derive(Debug)]
struct ClientInner {
    /// For requests with a quick response.
    http: reqwest::Client,
    /// For uploads: the response follows the last byte, however long that takes.
    uploads: reqwest::Client,
    credentials: Credentials,
    insecure: bool,
    insecure_registries: BTreeSet<String>,
    plain_http: bool,
    mirrors: Mirrors,
    plain_http_remedy: Option<&'static str>,
    attempts: u32,
    /// Rate limits: the end of each registry's `Retry-After`.
    rests: Mutex<HashMap<String, Instant>>,
    /// Detected schemes by registry.
    schemes: Mutex<HashMap<String, &'static str>>,
    /// Whether a registry mounts blobs without `from`, by registry.
    mounting: Mutex<HashMap<String, bool>>,
    /// Unreachable mirrors.
    away: Mutex<BTreeSet<Registry>>,
    /// Cached `Authorization` headers by scope.
    access: Mutex<HashMap<Scope, HeaderValue>>,
    /// Indexes of the folders in the place of registries.
    layouts: Lists,
}

impl Client {
    /// A client with `options`.
    ///
    /// Errors: Invalid – `ca_pem` holds no certificate; Internal – the HTTP client cannot be built.
    pub fn new(mut options: ClientOptions) -> Result<Self, Error> {
        let insecure = options.mirrors.insecure().map(str::to_owned);
        options.insecure_registries.extend(insecure);
        let unchecked = if options.insecure {
            Unchecked::Everybody
        } else {
            let registries = options.insecure_registries.iter();
            Unchecked::Hosts(registries.map(|it| host(it).to_owned()).collect())
        };
        let mut tls = trust::client_config(options.ca_pem.as_deref(), unchecked)?;
        if let Some(identity) = &options.identity {
            tls.client_auth_cert_resolver = identity.resolver(tls.crypto_provider())?;
        }
        let build = |timeout: Option<Duration>| {
            let builder = reqwest::Client::builder()
                .connect_timeout(CONNECT_TIMEOUT)
                .dns_resolver(Resolver::system())
                .redirect(redirect::policy())
                .tls_backend_preconfigured(tls.clone());
            match timeout {
                Some(timeout) => builder.read_timeout(timeout),
                None => builder,
            }
            .build()
            .map_err(|e| Error::internal("building the registry client", e))
        };
        Ok(Self(Arc::new(ClientInner {
            http: build(Some(READ_TIMEOUT))?,
            uploads: build(None)?,
            credentials: options.credentials,
            insecure: options.insecure,
            insecure_registries: options.insecure_registries,
            plain_http: options.plain_http,
            mirrors: options.mirrors,
            plain_http_remedy: options.plain_http_remedy,
            attempts: options.attempts.unwrap_or(ATTEMPTS).max(1),
            rests: Mutex::default(),
            schemes: Mutex::default(),
            mounting: Mutex::default(),
            away: Mutex::default(),
            access: Mutex::default(),
            layouts: Lists::default(),
        })))
    }

    /// Whether the registry needs no trusted certificate.
    pub fn is_insecure(&self, registry: &str) -> bool {
        self.0.plain_http || self.may_be_plain(registry)
    }

    fn may_be_plain(&self, registry: &str) -> bool {
        self.0.insecure || self.0.insecure_registries.contains(registry)
    }

    /// Whether the registry mounts blobs without `from`; `None` when unknown.
    fn mounts(&self, registry: &str) -> Option<bool> {
        let mounting = self.0.mounting.lock();
        let mounting = mounting.unwrap_or_else(PoisonError::into_inner);
        mounting.get(registry).copied()
    }

    fn note_mount(&self, registry: &str, does: bool) {
        let mounting = self.0.mounting.lock();
        let mut mounting = mounting.unwrap_or_else(PoisonError::into_inner);
        mounting.insert(registry.to_owned(), does);
    }
}

/// Without the port; an IPv6 address without its brackets.
fn host(registry: &str) -> &str {
    let bracketed = registry.strip_prefix('[').and_then(|it| it.split_once(']'));
    match (bracketed, registry.rsplit_once(':')) {
        (Some((address, _)), _) => address,
        (None, Some((host, _))) => host,
        (None, None) => registry,
    }
}
