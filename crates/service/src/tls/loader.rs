//! The certificates of a listener, made of the contents of their files.

use std::sync::Arc;

use net::{pem, trust};
use rustls::crypto::CryptoProvider;
use rustls::sign::SingleCertAndKey;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};

use super::certificate_list::{ListEntry, NamePattern};
use super::certified_name::{self, CertifiedName};
use super::clients::{ClientTrust, Verifier};
use super::files::{self, AuthorityContent, EntryFiles, NamedContent, TlsFiles, of_file};
use super::served::{Doubt, ServedCertificate, ServedIdentity};
use super::suites;
use super::tls_config::{TlsConfig, TlsVersion};
use crate::clock;

/// A certificate that cannot be used.
pub(super) struct Failure {
    pub(super) entry: Arc<ListEntry>,
    pub(super) reason: String,
}

impl Failure {
    pub(super) fn path(&self) -> std::path::Display<'_> {
        self.entry.bundle.display()
    }
}

/// Outcome of a load.
pub(super) struct LoadedCertificates {
    /// Certificates, and lines that are out of force and whose names are refused.
    pub(super) served: Vec<ServedCertificate>,
    pub(super) failures: Vec<Failure>,
}

pub(super) struct Loader {
    pub(super) config: TlsConfig,
    pub(super) speaks_http2: bool,
}

impl Loader {
    /// [`Self::load`] without earlier certificates.
    ///
    /// Errors: as [`Self::load`]; none of the certificates can be used.
    pub(super) fn load_first(&self, files: &TlsFiles) -> Result<LoadedCertificates, String> {
        let loaded = self.load(files, None)?;
        if loaded.served.iter().all(|one| one.identity.is_none()) {
            let reasons = loaded.failures.into_iter().map(|one| one.reason);
            return Err(reasons.collect::<Vec<_>>().join("; "));
        }
        for failure in &loaded.failures {
            let (cert, reason) = (failure.path(), &failure.reason);
            tracing::warn!(%cert, reason, "certificate not loaded, the others are served");
        }
        Ok(loaded)
    }

    /// Loads every certificate that has changed since `before`, or all. One that cannot be used stays as it was; when
    /// there is none with the same demands on clients, its names are refused, since they are protected.
    ///
    /// Errors: a line with demands that cannot be used, and whose names are unknown.
    pub(super) fn load(
        &self,
        files: &TlsFiles,
        before: Option<(&TlsFiles, &[ServedCertificate])>,
    ) -> Result<LoadedCertificates, String> {
        let (mut served, mut failures) = (Vec::new(), Vec::new());
        let old = before.map_or(&[][..], |(_, old)| old);
        for own in &files.entries {
            let entry = &own.entry;
            let is_same = before.is_some_and(|(seen, _)| {
                seen.of(entry) == Some(own) && seen.authorities == files.authorities
            });
            if is_same {
                served.extend(old.iter().find(|one| one.entry == *entry).cloned());
                continue;
            }
            match self.certificate(own, &files.authorities) {
                Ok(certificate) => served.push(certificate),
                Err(reason) => {
                    served.extend(in_place_of(own, old, &reason)?);
                    let entry = Arc::clone(entry);
                    failures.push(Failure { entry, reason });
                }
            }
        }
        Ok(LoadedCertificates { served, failures })
    }

    fn certificate(
        &self,
        files: &EntryFiles,
        authorities: &[NamedContent],
    ) -> Result<ServedCertificate, String> {
        let entry = &files.entry;
        let demands = &entry.options.demands;
        if !demands.problems.is_empty() {
            let bundle = entry.bundle.display();
            return Err(format!("{bundle}: {}", demands.problems.join("; ")));
        }
        let mut provider = suites::provider(&self.config.suites);
        demands
            .restrict(&mut provider)
            .map_err(|reason| format!("{}: {reason}", entry.bundle.display()))?;
        let provider = Arc::new(provider);
        let mut own = certified(files, &provider)?;
        own.key.key = demands
            .restricted(own.key.key, self.config.minimum)
            .map_err(|reason| of_file(&entry.bundle, &reason))?;
        let doubts = doubts(entry, &own);
        report(entry, &doubts);
        let versions: Vec<&SupportedProtocolVersion> = demands
            .versions(self.config.minimum)
            .map(|version| match version {
                TlsVersion::Tls12 => &TLS12,
                TlsVersion::Tls13 => &TLS13,
            })
            .collect();
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)
            .map_err(|e| e.to_string())?;
        let verifier = self.verifier(files, authorities, &own, provider)?;
        let builder = match verifier {
            None => builder.with_no_client_auth(),
            Some(verifier) => builder.with_client_cert_verifier(Arc::new(verifier)),
        };
        let key = Arc::clone(&own.key.key);
        let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(own.key)));
        config.alpn_protocols = self.protocols(entry);
        config.ignore_client_order = true;
        // Clients that resume use one; each costs a handshake's time.
        config.send_tls13_tickets = 1;
        let names = if entry.names.is_empty() {
            own.names
                .iter()
                .map(|name| NamePattern::new(name))
                .collect()
        } else {
            entry.names.clone()
        };
        Ok(ServedCertificate {
            names,
            demands: Arc::new(demands.clone()),
            entry: Arc::clone(entry),
            identity: Some(ServedIdentity {
                not_after: own.not_after,
                doubts,
                key,
                config: Arc::new(config),
            }),
        })
    }

    /// The verifier of the line, else that of the listener.
    fn verifier(
        &self,
        files: &EntryFiles,
        authorities: &[NamedContent],
        own: &CertifiedName,
        provider: Arc<CryptoProvider>,
    ) -> Result<Option<Verifier>, String> {
        let demands = &files.entry.options.demands;
        let (demand, own, trust) = match (demands.verify, &self.config.clients) {
            (Some(demand), _) => {
                let bundle = &files.entry.bundle;
                let files = files.trust.as_ref();
                let files = files.map_err(|reason| of_file(bundle, reason))?;
                let mut roots = all_roots(&files.authorities)?;
                let hints = if demands.hides_authorities {
                    Vec::new()
                } else {
                    roots.subjects()
                };
                roots.extend(all_roots(&files.silent_authorities)?.roots);
                let mut revoked = Vec::new();
                for (path, text) in &files.revoked {
                    let lists = pem::revocations(text).map_err(|reason| of_file(path, &reason))?;
                    revoked.extend(lists);
                }
                let trust = ClientTrust {
                    roots,
                    hints,
                    revoked,
                    schemes: demands.of_clients().map(<[_]>::to_vec),
                };
                (demand, None, trust)
            }
            (None, Some(clients)) => {
                let roots = roots(authorities)?;
                let trust = ClientTrust {
                    hints: roots.subjects(),
                    roots,
                    revoked: Vec::new(),
                    schemes: None,
                };
                let leaf = own.key.cert.first().cloned();
                (clients.demand, leaf, trust)
            }
            (None, None) => return Ok(None),
        };
        let bundle = files.entry.bundle.display();
        Verifier::new(demand, own, trust, provider)
            .map(Some)
            .map_err(|error| format!("{bundle}: verification of client certificates: {error}"))
    }

    fn protocols(&self, entry: &ListEntry) -> Vec<Vec<u8>> {
        let own = ["h2", "http/1.1"].map(str::to_owned);
        let offered = entry.options.alpn.as_deref().unwrap_or(&own).iter();
        offered
            .filter(|name| self.speaks_http2 || *name != "h2")
            .map(|name| name.clone().into_bytes())
            .collect()
    }
}

/// The old version of a certificate that cannot be loaded, or the refusal of names that the line protects.
///
/// Errors: their names are unknown.
fn in_place_of(
    files: &EntryFiles,
    old: &[ServedCertificate],
    reason: &str,
) -> Result<Option<ServedCertificate>, String> {
    let entry = &files.entry;
    let demands = &entry.options.demands;
    let is_previous = |one: &&ServedCertificate| {
        one.identity.is_some()
            && one.entry.bundle == entry.bundle
            && one.entry.options == entry.options
    };
    if let Some(previous) = old.iter().find(is_previous) {
        let mut kept = previous.clone();
        kept.entry = Arc::clone(entry);
        if !entry.names.is_empty() {
            kept.names.clone_from(&entry.names);
        }
        return Ok(Some(kept));
    }
    if !demands.protects() {
        return Ok(None);
    }
    let names = if entry.names.is_empty() {
        let cert = files.cert.as_ref().ok();
        let chain = cert.and_then(|cert| pem::certificates(cert).ok());
        let names = chain.map(|chain| {
            let names = chain
                .iter()
                .filter_map(|one| certified_name::names(one).ok());
            names.flatten().collect::<Vec<_>>()
        });
        let names = names.filter(|names| !names.is_empty()).ok_or_else(|| {
            format!(
                "{reason}; its line has demands on clients, and the server names that it is for are unknown: add them to the line"
            )
        })?;
        names.iter().map(|name| NamePattern::new(name)).collect()
    } else {
        entry.names.clone()
    };
    Ok(Some(ServedCertificate {
        entry: Arc::clone(entry),
        names,
        demands: Arc::new(demands.clone()),
        identity: None,
    }))
}

fn certified(files: &EntryFiles, provider: &CryptoProvider) -> Result<CertifiedName, String> {
    let bundle = &files.entry.bundle;
    let cert = files.cert.as_ref().map_err(String::clone)?;
    // First, since the key may be in the same file.
    pem::certificates(cert).map_err(|reason| of_file(bundle, &reason))?;
    if let Some((path, key)) = files.key.as_ref().map_err(String::clone)? {
        return CertifiedName::load((bundle, cert), (path, key), provider);
    }
    let [longer, shorter] = files::keys_beside(bundle);
    Err(format!(
        "{}: no private key in it, and no file {} or {}",
        bundle.display(),
        longer.display(),
        shorter.display()
    ))
}

fn all_roots(authorities: &AuthorityContent) -> Result<RootCertStore, String> {
    let mut found = roots(&authorities.files)?;
    found.add_parsable_certificates(authorities.of_system.iter().cloned());
    Ok(found)
}

fn roots(authorities: &[NamedContent]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for (path, text) in authorities {
        let found = trust::authorities(text).map_err(|reason| of_file(path, &reason))?;
        for authority in found {
            roots.add(authority).map_err(|e| of_file(path, &e))?;
        }
    }
    Ok(roots)
}

/// Reasons for which clients will refuse a certificate that can be loaded.
fn doubts(entry: &ListEntry, own: &CertifiedName) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let now = clock::now();
    if own.not_after <= now {
        doubts.push(Doubt::Expired(own.not_after));
    }
    if now < own.not_before {
        doubts.push(Doubt::NotYetValid(own.not_before));
    }
    if let Some(name) = own.lacks(&entry.names) {
        doubts.push(Doubt::LacksName(name.clone()));
    }
    doubts
}

fn report(entry: &ListEntry, doubts: &[Doubt]) {
    let cert = entry.bundle.display();
    for option in &entry.options.ignored {
        tracing::warn!(%cert, option, "option of the certificate list has no effect");
    }
    for doubt in doubts {
        tracing::warn!(%cert, "certificate {doubt}: clients will refuse it");
    }
}
