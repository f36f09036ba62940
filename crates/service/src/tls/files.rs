//! Contents of the files of a listener's certificates.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use net::{pem, trust};
use rustix::process::geteuid;
use rustls::pki_types::CertificateDer;

use super::certificate_list::{self, ListEntry};
use super::line_options::{AuthoritySource, LineDemands};
use super::tls_config::{CertificateFiles, Certificates, TlsConfig};

/// Extensions of files beside certificates, which are none themselves. Source: HAProxy, `crt`.
const BESIDE: [&str; 4] = ["issuer", "key", "ocsp", "sctl"];
/// Extensions of certificates of one name with keys of several kinds. Source: HAProxy, `ssl-load-extra-files`.
const KINDS: [&str; 3] = ["ecdsa", "rsa", "dsa"];

/// Extensions of authorities and their revocations in a folder. Source: HAProxy, `ca-file`.
const AUTHORITIES: [&str; 4] = ["cer", "crl", "crt", "pem"];

/// A file and its content.
pub(super) type NamedContent = (PathBuf, Vec<u8>);

/// Contents of the files of a configuration.
#[derive(PartialEq, Eq)]
pub(super) struct TlsFiles {
    pub(super) entries: Vec<EntryFiles>,
    /// Authorities of clients of the listener.
    pub(super) authorities: Vec<NamedContent>,
}

/// Contents of the files of a line; each can be read without the others.
#[derive(PartialEq, Eq)]
pub(super) struct EntryFiles {
    pub(super) entry: Arc<ListEntry>,
    pub(super) cert: Result<Vec<u8>, String>,
    /// In the certificate's file, or in one beside it; absent: in neither.
    pub(super) key: Result<Option<NamedContent>, String>,
    pub(super) trust: Result<TrustFiles, String>,
}

/// Contents of the files that verify clients.
#[derive(Default, PartialEq, Eq)]
pub(super) struct TrustFiles {
    pub(super) authorities: AuthorityContent,
    pub(super) silent_authorities: AuthorityContent,
    pub(super) revoked: Vec<NamedContent>,
}

/// Authorities of clients of a line.
#[derive(Default, PartialEq, Eq)]
pub(super) struct AuthorityContent {
    pub(super) files: Vec<NamedContent>,
    pub(super) of_system: Vec<CertificateDer<'static>>,
}

impl TlsFiles {
    /// Errors: a list or an authority that cannot be read; certificates are read as far as they can be.
    pub(super) async fn read(config: &TlsConfig) -> Result<Self, String> {
        let mut authorities = Vec::new();
        if let Some(clients) = &config.clients {
            for path in &clients.authorities {
                authorities.push((path.clone(), content(path).await?));
            }
        }
        let mut entries = Vec::new();
        for entry in listed(&config.certificates).await? {
            for entry in expanded(entry).await {
                entries.push(EntryFiles::read(entry).await);
            }
        }
        Ok(Self {
            entries,
            authorities,
        })
    }

    pub(super) fn of(&self, entry: &ListEntry) -> Option<&EntryFiles> {
        self.entries.iter().find(|files| *files.entry == *entry)
    }
}

/// The lines of a list; a folder means all certificates in it.
async fn listed(certificates: &Certificates) -> Result<Vec<ListEntry>, String> {
    match certificates {
        Certificates::Files(CertificateFiles { cert, key }) => {
            let mut entry = ListEntry {
                bundle: cert.clone(),
                ..ListEntry::default()
            };
            entry.options.key = Some(key.clone());
            Ok(vec![entry])
        }
        Certificates::List(folder) if folder.is_dir() => {
            if certificates_in(folder).await.is_empty() {
                return Err(format!("{}: no certificate is in it", folder.display()));
            }
            let entry = ListEntry {
                bundle: folder.clone(),
                ..ListEntry::default()
            };
            Ok(vec![entry])
        }
        Certificates::List(path) => {
            let text = content(path).await?;
            let text = std::str::from_utf8(pem::unmarked(&text))
                .map_err(|error| format!("{}: it is not UTF-8: {error}", path.display()))?;
            certificate_list::parse(path, text)
        }
    }
}

/// The entries of a line: one for each certificate in its folder, or for each kind of key.
async fn expanded(entry: ListEntry) -> Vec<ListEntry> {
    let bundles = if entry.bundle.is_dir() {
        certificates_in(&entry.bundle).await
    } else if entry.bundle.exists() {
        Vec::new()
    } else {
        let kinds = KINDS.iter().map(|kind| beside(&entry.bundle, kind));
        kinds.filter(|path| path.exists()).collect()
    };
    if bundles.is_empty() {
        return vec![entry];
    }
    let entries = bundles.into_iter().map(|bundle| ListEntry {
        bundle,
        ..entry.clone()
    });
    entries.collect()
}

/// The certificates of a folder, by name.
async fn certificates_in(folder: &Path) -> Vec<PathBuf> {
    let is_certificate = |path: &PathBuf| {
        let extension = path.extension().unwrap_or_default();
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        !name.starts_with(b".") && BESIDE.iter().all(|other| *other != extension)
    };
    let mut found = files_in(folder).await.unwrap_or_default();
    found.retain(is_certificate);
    found
}

/// The files of a folder, by name.
async fn files_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries = tokio::fs::read_dir(folder).await?;
    let mut found = Vec::new();
    while let Some(entry) = entries.next_entry().await? {
        found.push(entry.path());
    }
    found.retain(|path| path.is_file());
    found.sort();
    Ok(found)
}

impl EntryFiles {
    async fn read(entry: ListEntry) -> Self {
        let cert = content(&entry.bundle).await;
        let key = key(&entry, cert.as_deref().unwrap_or_default()).await;
        Self {
            cert,
            key,
            trust: TrustFiles::read(&entry.options.demands).await,
            entry: Arc::new(entry),
        }
    }
}

impl TrustFiles {
    async fn read(demands: &LineDemands) -> Result<Self, String> {
        if demands.verify.is_none() {
            return Ok(Self::default());
        }
        Ok(Self {
            authorities: AuthorityContent::read(demands.authorities.as_ref()).await?,
            silent_authorities: AuthorityContent::read(demands.silent_authorities.as_ref()).await?,
            revoked: contents(demands.revoked.as_deref()).await?,
        })
    }
}

impl AuthorityContent {
    async fn read(source: Option<&AuthoritySource>) -> Result<Self, String> {
        match source {
            None => Ok(Self::default()),
            Some(AuthoritySource::Path(path)) => Ok(Self {
                files: contents(Some(path)).await?,
                of_system: Vec::new(),
            }),
            Some(AuthoritySource::System) => {
                let of_system = tokio::task::spawn_blocking(trust::system_authorities).await;
                let of_system = of_system.map_err(|e| e.to_string())?;
                if of_system.is_empty() {
                    return Err("the system has no authorities: name a file".to_owned());
                }
                Ok(Self {
                    files: Vec::new(),
                    of_system,
                })
            }
        }
    }
}

/// The file with the key of `entry`. Source: HAProxy, `ssl-load-extra-files` and `ssl-load-extra-del-ext`.
async fn key(entry: &ListEntry, cert: &[u8]) -> Result<Option<NamedContent>, String> {
    if let Some(key) = &entry.options.key {
        return Ok(Some((key.clone(), content(key).await?)));
    }
    if pem::has_private_key(cert) {
        return Ok(Some((entry.bundle.clone(), cert.to_vec())));
    }
    for path in keys_beside(&entry.bundle) {
        if path.exists() {
            let text = content(&path).await?;
            return Ok(Some((path, text)));
        }
    }
    Ok(None)
}

/// Files that may have the key of the certificate `bundle`: `x.crt.key` and `x.key` of `x.crt`.
pub(super) fn keys_beside(bundle: &Path) -> [PathBuf; 2] {
    [beside(bundle, "key"), bundle.with_extension("key")]
}

fn beside(path: &Path, extension: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".");
    name.push(extension);
    name.into()
}

/// The content of a file, or of each file with authorities in a folder.
async fn contents(path: Option<&Path>) -> Result<Vec<NamedContent>, String> {
    let Some(path) = path else {
        return Ok(Vec::new());
    };
    let paths = if path.is_dir() {
        let mut found = files_in(path).await.map_err(|e| in_file(path, &e))?;
        let is_authority = |extension: &OsStr| AUTHORITIES.iter().any(|one| *one == extension);
        found.retain(|path| path.extension().is_some_and(is_authority));
        found
    } else {
        vec![path.to_owned()]
    };
    let mut found = Vec::new();
    for path in paths {
        let text = content(&path).await?;
        found.push((path, text));
    }
    Ok(found)
}

/// Errors: the reason, with the path.
pub(super) async fn content(path: &Path) -> Result<Vec<u8>, String> {
    let read = tokio::fs::read(path).await;
    read.map_err(|e| in_file(path, &e))
}

fn in_file(path: &Path, error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound if path.is_symlink() => {
            ": it is a link to a file that does not exist".to_owned()
        }
        io::ErrorKind::NotFound => match path.ancestors().skip(1).find(|it| it.exists()) {
            Some(folder) if path.parent() != Some(folder) => {
                format!(": only {} exists of its folders", folder.display())
            }
            _ => String::new(),
        },
        io::ErrorKind::IsADirectory => ": name the file in it".to_owned(),
        io::ErrorKind::PermissionDenied => {
            let user = geteuid().as_raw();
            format!(": let user {user} read it, as by `chown` or a group")
        }
        _ => String::new(),
    };
    format!("{}: {error}{remedy}", path.display())
}

/// A reason with the path of its file.
pub(super) fn of_file(path: &Path, reason: &dyn std::fmt::Display) -> String {
    format!("{}: {reason}", path.display())
}
