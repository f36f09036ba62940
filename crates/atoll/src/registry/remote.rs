//! A running registry, asked for what only those may ask who may delete everywhere.

use std::error::Error as StdError;
use std::path::{Path, PathBuf};

use clap::Args;
use reqwest::{Client, Method};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use service::Error;
use tokio::runtime::Runtime;

use super::password;

/// Who asks, and how the registry is trusted.
#[derive(Debug, Clone, Args)]
pub(super) struct RemoteAccess {
    /// Who asks: a user that may delete everywhere. The password is read as `htpasswd` reads it
    #[arg(long)]
    user: Option<String>,
    /// The registry's certificate, when the system does not trust it
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

/// The registry.
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

/// Whether a target is the address of a running registry.
pub(super) fn is_url(target: &str) -> bool {
    target.starts_with("http://") || target.starts_with("https://")
}

/// A target that is a folder.
///
/// Errors: neither a folder nor an address.
pub(super) fn folder<'a>(verb: &str, target: &'a str) -> Result<&'a Path, Error> {
    let folder = Path::new(target);
    if folder.is_dir() {
        return Ok(folder);
    }
    let reason = "neither a folder nor an address that begins with http:// or https://";
    Err(Error::new(format!("{verb} {target}"), reason))
}

impl RemoteAccess {
    /// The registry at `url`.
    ///
    /// Errors: no password, no certificate.
    pub(super) fn open<'a>(&'a self, url: &'a str) -> Result<RemoteRegistry<'a>, Error> {
        let user = self.user.as_deref();
        let password = user.map(password::read).transpose()?;
        let read = |path: &PathBuf| {
            std::fs::read(path).map_err(|e| Error::new(format!("reading {}", path.display()), e))
        };
        let ca = self.ca.as_ref().map(read).transpose()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| Error::new("starting the runtime", e))?;
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
    /// What the registry answers at `/v2/_atoll/<what>`.
    ///
    /// Errors: it is not reached, refuses, or answers something else.
    pub(super) fn ask<T: DeserializeOwned>(&self, method: Method, what: &str) -> Result<T, Error> {
        let url = format!("{}/v2/_atoll/{what}", self.url.trim_end_matches('/'));
        let doing = || format!("asking {}", self.url);
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
                let reason = format!("{status}, and no answer of this registry");
                Err(Error::new(doing(), reason))
            }
        }
    }
}

/// Why a registry was not reached, with the remedy where there is one.
fn cause(error: &reqwest::Error) -> String {
    let causes = || std::iter::successors(error.source(), |cause| (*cause).source());
    let text = causes()
        .last()
        .map_or_else(|| error.to_string(), ToString::to_string);
    if causes().any(|cause| find::<net::resolve::Error>(cause).is_some()) {
        return format!("the name cannot be resolved: {text}");
    }
    if let Some(wrong) = causes().find_map(find::<rustls::Error>) {
        return match wrong {
            rustls::Error::InvalidCertificate(wrong) => {
                format!(
                    "its certificate is not trusted ({wrong}); name its authority with --ca FILE"
                )
            }
            rustls::Error::InvalidMessage(_) => {
                format!("it does not speak TLS ({wrong}); use http:// if it is meant to be plain")
            }
            _ => format!("TLS failed: {wrong}"),
        };
    }
    match causes()
        .find_map(find::<std::io::Error>)
        .map(std::io::Error::kind)
    {
        Some(std::io::ErrorKind::ConnectionRefused) => {
            "the connection is refused: nothing listens there".to_owned()
        }
        _ if error.is_timeout() => format!("no answer in time: {text}"),
        _ => text,
    }
}

/// An error of a kind, also where it is wrapped into one of the system.
fn find<'a, E: StdError + 'static>(cause: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    let inner = || cause.downcast_ref::<std::io::Error>()?.get_ref();
    cause
        .downcast_ref()
        .or_else(|| inner().and_then(|inner| find(inner)))
}
