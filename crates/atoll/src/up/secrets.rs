//! What is made up at the first start: passwords and the registry's certificate.

use std::net::IpAddr;
use std::path::PathBuf;

use rand::Rng as _;
use rand::distr::Alphanumeric;
use service::{Error, tls};

use super::layout::{Layout, write_whole};

/// Units: characters. 62^32 choices.
const PASSWORD_LENGTH: usize = 32;
/// User of the registry.
pub(crate) const REGISTRY_USER: &str = "atoll";
const PRIVATE: u32 = 0o600;
const PUBLIC: u32 = 0o644;

/// Files with secrets. Nothing holds their content longer than needed.
#[derive(Debug, Clone)]
pub(crate) struct Secrets {
    /// Password of the database's owner.
    pub(crate) database_password: PathBuf,
    /// Password of the registry's user.
    pub(crate) registry_password: PathBuf,
    /// The registry's users.
    pub(crate) htpasswd: PathBuf,
    /// The registry's certificate and key.
    pub(crate) tls: tls::Files,
}

impl Secrets {
    /// Makes what is missing.
    ///
    /// Errors: a file that cannot be written.
    pub(crate) fn ensure(layout: &Layout, listen: IpAddr) -> Result<Self, Error> {
        let secrets = Self {
            database_password: layout.secret("database-password"),
            registry_password: layout.secret("registry-password"),
            htpasswd: layout.secret("registry.htpasswd"),
            tls: tls::Files {
                cert: layout.registry_certificate(),
                key: layout.secret("registry.key"),
            },
        };
        if !secrets.database_password.exists() {
            write_whole(&secrets.database_password, password().as_bytes(), PRIVATE)?;
        }
        secrets.ensure_registry_user()?;
        secrets.ensure_certificate(listen)?;
        Ok(secrets)
    }

    /// The password that is written last: a file of users without it would let nobody in.
    fn ensure_registry_user(&self) -> Result<(), Error> {
        if self.registry_password.exists() && self.htpasswd.exists() {
            return Ok(());
        }
        let password = password();
        let line = registry::htpasswd::line(REGISTRY_USER, &password)
            .map_err(|e| Error::new("making the registry's user", e))?;
        write_whole(&self.htpasswd, format!("{line}\n").as_bytes(), PRIVATE)?;
        write_whole(&self.registry_password, password.as_bytes(), PRIVATE)
    }

    fn ensure_certificate(&self, listen: IpAddr) -> Result<(), Error> {
        if self.tls.cert.exists() && self.tls.key.exists() {
            return Ok(());
        }
        let mut names = vec![
            "localhost".to_owned(),
            "127.0.0.1".to_owned(),
            "::1".to_owned(),
        ];
        let own = super::environment::reachable(listen).to_string();
        if !names.contains(&own) {
            names.push(own);
        }
        let pem = tls::self_signed(&names)?;
        write_whole(&self.tls.key, pem.key.as_bytes(), PRIVATE)?;
        write_whole(&self.tls.cert, pem.cert.as_bytes(), PUBLIC)
    }
}

fn password() -> String {
    rand::rng()
        .sample_iter(Alphanumeric)
        .take(PASSWORD_LENGTH)
        .map(char::from)
        .collect()
}
