//! The client side of the distribution protocol.
//!
//! Requests are repeated where that is safe, logins happen when the registry asks for them, bodies are streamed.

mod access;
mod addresses;
mod challenge;
mod download;
mod error;
mod layout;
mod list;
mod origin;
mod places;
mod pull;
mod push;
mod redirect;
mod send;
mod source;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use model::Error;

use crate::layout::Lists;
use crate::{Credentials, Mirrors};
use access::Access;
use net::resolve::Resolver;
use net::trust::{self, Unchecked};

pub use list::referrers_tag;
pub use push::Provided;
pub use source::{BlobSource, Remote};

/// Long enough for a busy registry, short enough to notice a dead one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Without a byte for this long, the registry is taken for dead.
const READ_TIMEOUT: Duration = Duration::from_mins(1);

/// How to reach registries.
#[derive(Debug, Clone, Default)]
pub struct ClientOptions {
    /// Who to log in as, where a registry asks for it.
    pub credentials: Credentials,
    /// Certificates, as PEM, that are trusted besides the system's.
    pub ca_pem: Option<Vec<u8>>,
    /// Whether any certificate is accepted, and plain HTTP where a registry speaks no TLS.
    pub insecure: bool,
    /// The same for single registries: hosts with their ports. Any certificate is accepted on all ports of such a host.
    pub insecure_registries: BTreeSet<String>,
    /// Whether the registries speak plain HTTP and nothing else.
    pub plain_http: bool,
    /// Where what is read may lie besides. What is written goes where its name says.
    pub mirrors: Mirrors,
    /// How plain HTTP is allowed, as a flag or setting of the caller: for errors about registries without TLS.
    pub plain_http_remedy: Option<&'static str>,
    /// How often a request is sent at most; nothing for a patient client. With one attempt, what breaks off is not gone on with.
    pub attempts: Option<u32>,
}

/// A client of any number of registries, and of the folders that take their place. Clones share connections and logins.
#[derive(Debug, Clone)]
pub struct Client(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// For whatever answers soon.
    http: reqwest::Client,
    /// For uploads: the answer comes only after the last byte was sent, however long that takes.
    uploads: reqwest::Client,
    credentials: Credentials,
    insecure: bool,
    insecure_registries: BTreeSet<String>,
    plain_http: bool,
    mirrors: Mirrors,
    plain_http_remedy: Option<&'static str>,
    attempts: u32,
    /// Until when registries want to be left alone.
    rests: Mutex<HashMap<String, Instant>>,
    /// Schemes that were found out, by registry.
    schemes: Mutex<HashMap<String, &'static str>>,
    /// Whether registries find blobs themselves, as far as they were asked.
    mounting: Mutex<HashMap<String, bool>>,
    /// Mirrors that could not be reached.
    away: Mutex<BTreeSet<String>>,
    /// What the registries demanded so far.
    access: Mutex<HashMap<access::Scope, Access>>,
    /// The lists of folders that take the place of registries.
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
        let tls = trust::client_config(options.ca_pem.as_deref(), unchecked)?;
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
        Ok(Self(Arc::new(Shared {
            http: build(Some(READ_TIMEOUT))?,
            uploads: build(None)?,
            credentials: options.credentials,
            insecure: options.insecure,
            insecure_registries: options.insecure_registries,
            plain_http: options.plain_http,
            mirrors: options.mirrors,
            plain_http_remedy: options.plain_http_remedy,
            attempts: options.attempts.unwrap_or(send::ATTEMPTS).max(1),
            rests: Mutex::default(),
            schemes: Mutex::default(),
            mounting: Mutex::default(),
            away: Mutex::default(),
            access: Mutex::default(),
            layouts: Lists::default(),
        })))
    }

    /// Whether the registry needs no certificate that is trusted here.
    pub fn is_insecure(&self, registry: &str) -> bool {
        self.0.plain_http || self.may_be_plain(registry)
    }

    fn may_be_plain(&self, registry: &str) -> bool {
        self.0.insecure || self.0.insecure_registries.contains(registry)
    }

    /// Whether the registry finds blobs itself; nothing while that is not known.
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
