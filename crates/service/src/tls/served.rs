//! The certificates that a listener serves, and the choice among them.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use chrono::{DateTime, Utc};
use rustls::ServerConfig;

use super::certificate_list::{NameMatch, NamePattern};
use crate::clock;

/// The certificates in force; shared by its clones, and replaced as a whole.
#[derive(Debug, Clone)]
pub(crate) struct ServedCertificates(Arc<RwLock<Arc<Vec<ServedCertificate>>>>);

/// A certificate in force.
#[derive(Debug, Clone)]
pub(super) struct ServedCertificate {
    /// File with the chain.
    pub(super) path: PathBuf,
    /// Server names that it is for.
    pub(super) names: Vec<NamePattern>,
    /// Server names that it is not for.
    pub(super) excluded: Vec<NamePattern>,
    pub(super) not_after: DateTime<Utc>,
    pub(super) config: Arc<ServerConfig>,
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

    /// The configuration for a client that asks for `name` (lower case): of a certificate that has not expired, names it
    /// exactly, else by a wildcard; without any, of the first.
    ///
    /// Panics: never; there is one certificate at least.
    pub(crate) fn choose(&self, name: Option<&str>) -> Arc<ServerConfig> {
        let all = self.all();
        let Some(name) = name.filter(|_| all.len() > 1) else {
            return Arc::clone(&all[0].config);
        };
        let now = clock::now();
        let mut best = None;
        for certificate in all.iter() {
            let Some(matched) = certificate.matches(name) else {
                continue;
            };
            let rank = (now < certificate.not_after, matched);
            // The first of equals, as in HAProxy.
            if best.as_ref().is_none_or(|(best, _)| rank > *best) {
                best = Some((rank, certificate));
            }
        }
        let chosen = best.map_or(&all[0], |(_, certificate)| certificate);
        Arc::clone(&chosen.config)
    }
}

impl ServedCertificate {
    fn matches(&self, name: &str) -> Option<NameMatch> {
        if self.excluded.iter().any(|one| one.matches(name).is_some()) {
            return None;
        }
        self.names.iter().filter_map(|one| one.matches(name)).max()
    }
}
