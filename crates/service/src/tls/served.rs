//! The certificates that a listener serves, and the choice among them.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use chrono::{DateTime, Utc};
use rustls::sign::SigningKey;
use rustls::{ServerConfig, SignatureAlgorithm, SignatureScheme};

use super::certificate_list::{ListEntry, NameMatch, NamePattern};
use super::line_options::LineDemands;
use crate::clock;

/// Format of a date in messages.
const DATE: &str = "%Y-%m-%d %H:%M UTC";

/// The certificates in force; shared by its clones, and replaced as a whole.
#[derive(Debug, Clone)]
pub(crate) struct ServedCertificates(Arc<RwLock<Arc<Vec<ServedCertificate>>>>);

/// A certificate in force, or a line whose demands cannot be met: its names are refused.
#[derive(Debug, Clone)]
pub(super) struct ServedCertificate {
    /// The line of the list.
    pub(super) entry: Arc<ListEntry>,
    /// Server names that it is for.
    pub(super) names: Vec<NamePattern>,
    /// Demands of the line, by which one connection may be used for another name, too.
    pub(super) demands: Arc<LineDemands>,
    /// Absent for a line that is out of force.
    pub(super) identity: Option<ServedIdentity>,
}

/// The proof of a certificate's names.
#[derive(Debug, Clone)]
pub(super) struct ServedIdentity {
    pub(super) not_after: DateTime<Utc>,
    pub(super) doubts: Vec<Doubt>,
    pub(super) key: Arc<dyn SigningKey>,
    pub(super) config: Arc<ServerConfig>,
}

/// A reason for which clients refuse a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Doubt {
    Expired(DateTime<Utc>),
    NotYetValid(DateTime<Utc>),
    /// The list gives it this name.
    LacksName(NamePattern),
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired(at) => write!(f, "has expired on {}", at.format(DATE)),
            Self::NotYetValid(from) => write!(f, "is not valid before {}", from.format(DATE)),
            Self::LacksName(name) => write!(f, "lacks the name {name}, which the list gives it"),
        }
    }
}

/// Admits hosts on a connection: by one that was opened for another name, a client cannot evade the demands of a host's
/// own line. An extension of requests on decrypted connections.
#[derive(Debug, Clone)]
pub struct HostAdmission {
    certificates: ServedCertificates,
    demands: Arc<LineDemands>,
}

impl HostAdmission {
    /// Whether the connection meets the demands on `host`, which is in lower case.
    pub fn admits(&self, host: Option<&str>) -> bool {
        let all = self.certificates.all();
        let demands = &governing(&all, host).demands;
        !demands.protects() || *demands == self.demands
    }
}

impl ServedCertificates {
    /// Serves `certificates`, of which there has to be one.
    pub(super) fn new(certificates: Vec<ServedCertificate>) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(certificates))))
    }

    pub(super) fn replace(&self, certificates: Vec<ServedCertificate>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(certificates);
    }

    pub(super) fn all(&self) -> Arc<Vec<ServedCertificate>> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The configuration for a client that asks for `name` (lower case) and verifies signatures of `schemes`. The line
    /// that governs the name decides on the demands. Of the certificates with these demands, one is best that has not
    /// expired, that the client can verify, that names it exactly, and that is not RSA, as in HAProxy. Without any, the
    /// default serves. Absent: the line is out of force, and the client is refused.
    ///
    /// Panics: never; there is one certificate at least.
    pub(crate) fn choose(
        &self,
        name: Option<&str>,
        schemes: &[SignatureScheme],
    ) -> Option<(Arc<ServerConfig>, HostAdmission)> {
        let all = self.all();
        let governing = governing(&all, name);
        let now = clock::now();
        let mut best = None;
        let alike = all.iter().filter(|one| one.demands == governing.demands);
        for certificate in alike {
            let matched = name.and_then(|name| certificate.matches(name));
            let (Some(matched), Some(identity)) = (matched, &certificate.identity) else {
                continue;
            };
            let rank = (
                now < identity.not_after,
                identity.key.choose_scheme(schemes).is_some(),
                matched,
                identity.key.algorithm() != SignatureAlgorithm::RSA,
            );
            // The first of equals, as in HAProxy.
            if best.as_ref().is_none_or(|(best, _)| rank > *best) {
                best = Some((rank, identity));
            }
        }
        let chosen = best.map(|(_, identity)| identity);
        let identity = chosen.or(governing.identity.as_ref())?;
        let admission = HostAdmission {
            certificates: self.clone(),
            demands: Arc::clone(&governing.demands),
        };
        Some((Arc::clone(&identity.config), admission))
    }
}

/// The line that governs `name`: of those that name it exactly, else by a wildcard, one that protects; without any, the
/// default.
fn governing<'a>(all: &'a [ServedCertificate], name: Option<&str>) -> &'a ServedCertificate {
    let mut best = None;
    for certificate in all {
        let Some(matched) = name.and_then(|name| certificate.matches(name)) else {
            continue;
        };
        let rank = (matched, certificate.demands.protects());
        if best.is_none_or(|(best, _)| rank > best) {
            best = Some((rank, certificate));
        }
    }
    let default = || all.iter().find(|one| one.entry.is_default);
    let best = best.map(|(_, certificate)| certificate);
    best.or_else(default).unwrap_or(&all[0])
}

impl ServedCertificate {
    /// Whether both are the same version of a line's certificate.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let config = |one: &Self| one.identity.as_ref().map(|it| Arc::as_ptr(&it.config));
        self.entry == other.entry && config(self) == config(other)
    }

    fn matches(&self, name: &str) -> Option<NameMatch> {
        let mut excluded = self.entry.excluded.iter();
        if excluded.any(|one| one.matches(name).is_some()) {
            return None;
        }
        self.names.iter().filter_map(|one| one.matches(name)).max()
    }
}
