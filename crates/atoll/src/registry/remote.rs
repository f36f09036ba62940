//! Administrative requests to a running registry, which require the right to delete everywhere.

use std::error::Error as StdError;
use std::path::{Path, PathBuf};

use clap::Args;
use reqwest::{Client, Method};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use service::{Error, ResultExt as _};
use tokio::runtime::Runtime;

use super::password;

/// Credentials and trust of a registry.
#[derive(Debug, Clone, Args)]
pub(super) struct RemoteAccess {
    /// User with the right to delete everywhere; the password is read as by `htpasswd`
    #[arg(long)]
    user: Option<String>,
    /// CA certificates (PEM) to trust in addition to the system's
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

/// A running registry.
pub(super) struct RemoteRegistry<'a> {
    url: &'a str,
    user: Option<&'a str>,
    password: Option<String>,
    client: Client,
    runtime: Runtime,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RegistryResponse<T> {
    Refused { errors: Vec<RemoteError> },
    Given(T),
}

#[derive(Deserialize)]
struct RemoteError {
    message: String,
}

/// Whether a target is a URL.
pub(super) fn is_url(target: &str) -> bool {
    target.starts_with("http://") || target.starts_with("https://")
}

/// Folder of a target.
///
/// Errors: neither a folder nor a URL.
pub(super) fn folder<'a>(verb: &str, target: &'a str) -> Result<&'a Path, Error> {
    let folder = Path::new(target);
    if folder.is_dir() {
        return Ok(folder);
    }
    let reason = "neither a folder nor a URL with http:// or https://";
    Err(Error::new(format!("{verb} {target}"), reason))
}

impl RemoteAccess {
    /// Client for the registry at `url`.
    ///
    /// Errors: a missing password or certificate.
    pub(super) fn open<'a>(&'a self, url: &'a str) -> Result<RemoteRegistry<'a>, Error> {
        let user = self.user.as_deref();
        let password = user.map(password::read).transpose()?;
        let read =
            |path: &PathBuf| std::fs::read(path).doing(|| format!("reading {}", path.display()));
        let ca = self.ca.as_ref().map(read).transpose()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .doing("starting the runtime")?;
        Ok(RemoteRegistry {
            url,
            user,
            password,
            client: service::http_client(ca.as_deref(), false)?,
            runtime,
        })
    }
}

impl RemoteRegistry<'_> {
    /// Sends a request to `/v2/_atoll/<path>` and parses the response.
    ///
    /// Errors: it is unreachable, refuses, or responds in another format.
    pub(super) fn ask<T: DeserializeOwned>(&self, method: Method, path: &str) -> Result<T, Error> {
        let url = format!("{}/v2/_atoll/{path}", self.url.trim_end_matches('/'));
        let doing = || format!("requesting {}", self.url);
        let mut request = self.client.request(method, url);
        if let Some(user) = self.user {
            request = request.basic_auth(user, self.password.as_ref());
        }
        let answered = async {
            let response = request.send().await?;
            Ok((response.status(), response.text().await?))
        };
        let (status, text) = self
            .runtime
            .block_on(answered)
            .map_err(|e: reqwest::Error| Error::new(doing(), cause(&e)))?;
        match serde_json::from_str(&text) {
            Ok(RegistryResponse::Given(answer)) => Ok(answer),
            Ok(RegistryResponse::Refused { errors }) => {
                let messages: Vec<_> = errors.into_iter().map(|error| error.message).collect();
                Err(Error::new(doing(), messages.join(", ")))
            }
            Err(_) => {
                let reason = format!("unexpected response: {status}");
                Err(Error::new(doing(), reason))
            }
        }
    }
}

/// Cause of a failed request, with a remedy where there is one.
fn cause(error: &reqwest::Error) -> String {
    let causes = || model::error::causes(error);
    let text = causes()
        .last()
        .map_or_else(String::new, ToString::to_string);
    if causes().any(<dyn StdError>::is::<net::resolve::Error>) {
        return format!("name resolution failed: {text}");
    }
    if let Some(wrong) = causes().find_map(<dyn StdError>::downcast_ref::<rustls::Error>) {
        return match wrong {
            rustls::Error::InvalidCertificate(wrong) => {
                format!("certificate verification failed ({wrong}); specify the CA with --ca FILE")
            }
            rustls::Error::InvalidMessage(_) => {
                format!("no TLS on this port ({wrong}); use http:// for plain HTTP")
            }
            _ => format!("TLS failed: {wrong}"),
        };
    }
    match causes()
        .find_map(<dyn StdError>::downcast_ref::<std::io::Error>)
        .map(std::io::Error::kind)
    {
        Some(std::io::ErrorKind::ConnectionRefused) => {
            "connection refused: nothing listens on this port".to_owned()
        }
        _ if error.is_timeout() => format!("timed out: {text}"),
        _ => text,
    }
}
