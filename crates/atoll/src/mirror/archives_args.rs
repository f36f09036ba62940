//! Places of archives on the command line, and access to the servers that have them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::PathBuf;

use ::mirror::archive::{ArchiveSource, archive_url};
use clap::Args;
use model::Error;
use net::trust::Unchecked;
use net::web::FileServer;
use oci_client::registry_logins;
use reqwest::header::HeaderValue;
use tokio::runtime::{Builder, Handle};
use url::Url;

/// Logins and certificates.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub(super) struct AccessArgs {
    /// Path of the authentication file (pull secret). Default: the files of podman and docker
    #[arg(long, value_name = "FILE")]
    pub(super) authfile: Option<PathBuf>,
    /// CA certificates (PEM) to trust in addition to the system's
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Allow plain HTTP and any certificate for this registry or web server; repeatable
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(super) insecure_registry: Vec<String>,
}

impl AccessArgs {
    /// CA certificates of `--ca`.
    ///
    /// Errors: Invalid – the file cannot be read.
    pub(super) fn ca_pem(&self) -> Result<Option<Vec<u8>>, Error> {
        let read = |path: &PathBuf| {
            std::fs::read(path)
                .map_err(|e| Error::invalid("ca", format!("{}: {e}", path.display())))
        };
        self.ca.as_ref().map(read).transpose()
    }

    /// The place that a path or URL names. `is_any`: certificates are not verified.
    ///
    /// Errors: Invalid – a malformed URL, an authentication or certificate file that cannot be read.
    pub(super) async fn archives(
        &self,
        named: &OsStr,
        is_any: bool,
    ) -> Result<ArchiveSource, Error> {
        let Some(text) = url_text(named) else {
            return Ok(ArchiveSource::from(named));
        };
        let url = archive_url(text)?;
        let host = authority(&url);
        let login = registry_logins(self.authfile.as_deref())?;
        let login = match login.login(&host, None).await? {
            Some(login) => Some(HeaderValue::from_str(&login.basic()).map_err(|_| {
                let reason = format!("the login of {host} cannot be sent");
                Error::invalid("authentication file", reason)
            })?),
            None => None,
        };
        let ca_pem = self.ca_pem()?;
        let unchecked = self.unchecked(&url, is_any);
        let server = FileServer::new(ca_pem.as_deref(), unchecked, login)?;
        Ok(ArchiveSource::web(server, url, Handle::current()))
    }

    /// Calls `work` with the place that a path or URL names.
    ///
    /// Errors: as [`Self::archives`]; Internal – the runtime cannot be started.
    pub(super) fn with_archives<T>(
        &self,
        named: &OsStr,
        is_any: bool,
        work: impl FnOnce(ArchiveSource) -> T,
    ) -> Result<T, Error> {
        if url_text(named).is_none() {
            return Ok(work(ArchiveSource::from(named)));
        }
        let runtime = Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|e| Error::internal("starting the runtime", e))?;
        // `work` blocks, outside of the runtime that drives its requests.
        let source = runtime.block_on(self.archives(named, is_any))?;
        Ok(work(source))
    }

    fn unchecked(&self, url: &Url, is_any: bool) -> Unchecked {
        let host = url.host_str().unwrap_or_default().to_owned();
        let with_port = format!("{host}:{}", url.port_or_known_default().unwrap_or_default());
        let mut named = self.insecure_registry.iter();
        if is_any || named.any(|it| *it == host || *it == with_port) {
            Unchecked::Hosts(BTreeSet::from([host]))
        } else {
            Unchecked::from(false)
        }
    }
}

fn url_text(named: &OsStr) -> Option<&str> {
    named.to_str().filter(|text| ArchiveSource::is_url(text))
}

/// The key of a server in authentication files.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}
