//! Generated secrets: passwords and the registry's certificate.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rand::RngExt as _;
use rand::distr::Alphanumeric;
use serde_json::{Value, json};
use service::file::{read, write_atomic};
use service::{Error, ResultExt as _, tls};

use crate::certificate::{self, SiteAuthority};

/// Units: characters. 62^32 choices.
const PASSWORD_LENGTH: usize = 32;
/// Registry user.
pub const REGISTRY_USER: &str = "atoll";
/// Registry credentials in the format of container tools (auth.json).
pub const LOGINS: &str = "registry-logins.json";
const PUBLIC: u32 = 0o644;

/// Paths of secret files. Their content is not kept in memory.
#[derive(Debug, Clone)]
pub struct SecretFiles {
    /// Password of the database owner.
    pub database_password: PathBuf,
    /// Password of the registry user.
    pub registry_password: PathBuf,
    /// Users of the registry.
    pub htpasswd: PathBuf,
    /// Certificate and key of the registry.
    pub tls: tls::CertificateFiles,
}

impl SecretFiles {
    /// Secrets in `folder`; the certificate, which is public, is at `certificate`.
    pub fn in_folder(folder: &Path, certificate: PathBuf) -> Self {
        Self {
            database_password: folder.join("database-password"),
            registry_password: folder.join("registry-password"),
            htpasswd: folder.join("registry.htpasswd"),
            tls: tls::CertificateFiles {
                cert: certificate,
                key: folder.join("registry.key"),
            },
        }
    }

    /// Generates missing secrets with `mode`; the certificate is for `names`, and of `authority` or self-signed.
    ///
    /// Errors: a file that cannot be written, a name that is invalid in a certificate.
    pub fn ensure(
        &self,
        names: &[String],
        mode: u32,
        authority: Option<&SiteAuthority>,
    ) -> Result<(), Error> {
        if !self.database_password.exists() {
            write_atomic(&self.database_password, password().as_bytes(), mode)?;
        }
        self.ensure_registry_user(mode)?;
        self.ensure_certificate(names, mode, authority)
    }

    /// The password is written last: its presence marks a complete pair, and a crash before it makes the next start
    /// generate both again.
    fn ensure_registry_user(&self, mode: u32) -> Result<(), Error> {
        if self.registry_password.exists() && self.htpasswd.exists() {
            return Ok(());
        }
        let password = password();
        let line = registry::htpasswd::line(REGISTRY_USER, &password)
            .doing("creating the registry user")?;
        write_atomic(&self.htpasswd, format!("{line}\n").as_bytes(), mode)?;
        write_atomic(&self.registry_password, password.as_bytes(), mode)
    }

    /// Writes the credentials of the registry for each of its `addresses`. An existing file gets those that are missing: it
    /// may have others.
    ///
    /// Errors: files that cannot be read or written.
    pub fn write_logins(&self, path: &Path, addresses: &[String], mode: u32) -> Result<(), Error> {
        let found = match read(path)? {
            Some(text) => {
                let found: Result<Value, _> = serde_json::from_slice(&text);
                found.doing(|| format!("reading {}", path.display()))?
            }
            None => json!({}),
        };
        let mut all = found.clone();
        let password = &self.registry_password;
        let password = std::fs::read_to_string(password)
            .doing(|| format!("reading {}", password.display()))?;
        let login = STANDARD.encode(format!("{REGISTRY_USER}:{}", password.trim_end()));
        let members = all.as_object_mut();
        let logins = members.map(|members| members.entry("auths").or_insert_with(|| json!({})));
        let Some(logins) = logins.and_then(Value::as_object_mut) else {
            let reason = "expected an object with the member auths, as `podman login` writes it";
            return Err(Error::new(format!("reading {}", path.display()), reason));
        };
        for address in addresses {
            let entry = logins.entry(address.clone());
            entry.or_insert_with(|| json!({ "auth": login }));
        }
        if all == found {
            return Ok(());
        }
        let text = format!("{all:#}\n");
        write_atomic(path, text.as_bytes(), mode)
    }

    /// A foreign certificate is kept; one of `authority` is renewed when it is old or for other names.
    fn ensure_certificate(
        &self,
        names: &[String],
        mode: u32,
        authority: Option<&SiteAuthority>,
    ) -> Result<(), Error> {
        let files = &self.tls;
        if files.cert.exists() && files.key.exists() {
            let found =
                std::fs::read(&files.cert).doing(|| format!("reading {}", files.cert.display()))?;
            let is_old = authority.is_some_and(|authority| {
                authority.has_signed(&found) && !authority.is_fresh(&found, names)
            });
            if !is_old {
                return Ok(());
            }
        }
        let pem = match authority {
            None => certificate::self_signed(names)?,
            Some(authority) => {
                let mut pem = authority.sign(names, certificate::VALIDITY_DAYS)?;
                // Services read this file as the authorities that they trust, too.
                pem.cert.push_str(authority.pem());
                pem
            }
        };
        write_atomic(&files.key, pem.key.as_bytes(), mode)?;
        write_atomic(&files.cert, pem.cert.as_bytes(), PUBLIC)
    }
}

/// Names of a registry on this machine: `own` and those of the loopback interface.
pub fn registry_names(own: &[String]) -> Vec<String> {
    let mut names = own.to_vec();
    for name in ["localhost", "127.0.0.1", "::1"] {
        if names.iter().all(|known| known != name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Generates a random password.
pub fn password() -> String {
    rand::rng()
        .sample_iter(Alphanumeric)
        .take(PASSWORD_LENGTH)
        .map(char::from)
        .collect()
}
