//! HTTP clients of servers.

use std::time::Duration;

use oci::resolve::Resolver;

use crate::Error;

/// Long enough for a busy neighbour, short enough to notice a dead one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Without a byte for this long, the other side is taken for dead.
const READ_TIMEOUT: Duration = Duration::from_mins(1);

/// A client that trusts the system's roots and `ca_pem`, or, when `insecure`, everybody. Its connections are shared
/// among the addresses of a host.
///
/// Errors: when `ca_pem` is no PEM certificate.
pub fn http_client(ca_pem: Option<&[u8]>, insecure: bool) -> Result<reqwest::Client, Error> {
    let tls = oci::trust::client_config(ca_pem, insecure)
        .map_err(|e| Error::new("reading the trusted certificates", e))?;
    reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .dns_resolver(Resolver::system())
        .tls_backend_preconfigured(tls)
        .build()
        .map_err(|e| Error::new("building the HTTP client", e))
}
