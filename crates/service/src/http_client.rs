//! HTTP clients of servers.

use std::time::Duration;

use net::resolve::Resolver;

use crate::Error;
use crate::error::ResultExt as _;

/// Long enough for a busy server, short enough to notice a dead one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest silence of the other side.
const READ_TIMEOUT: Duration = Duration::from_mins(1);

/// A client that trusts the system's roots and `ca_pem`, or, when `insecure`, any certificate. Its connections are
/// balanced over the addresses of a host.
///
/// Errors: when `ca_pem` is no PEM certificate.
pub fn http_client(ca_pem: Option<&[u8]>, insecure: bool) -> Result<reqwest::Client, Error> {
    built(builder(ca_pem, insecure)?)
}

/// [`http_client`] for requests with secrets in their headers: send them with [`net::redirect::send`].
///
/// Errors: as [`http_client`].
pub fn http_client_with_secrets(
    ca_pem: Option<&[u8]>,
    insecure: bool,
) -> Result<reqwest::Client, Error> {
    built(builder(ca_pem, insecure)?.redirect(net::redirect::policy()))
}

fn builder(ca_pem: Option<&[u8]>, insecure: bool) -> Result<reqwest::ClientBuilder, Error> {
    let tls =
        net::trust::client_config(ca_pem, insecure).doing("reading the trusted certificates")?;
    let builder = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .dns_resolver(Resolver::system())
        .tls_backend_preconfigured(tls);
    Ok(builder)
}

fn built(builder: reqwest::ClientBuilder) -> Result<reqwest::Client, Error> {
    builder.build().doing("building the HTTP client")
}
