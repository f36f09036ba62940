//! HTTP clients of servers.

use std::time::Duration;

use crate::Error;

/// Long enough for a busy neighbour, short enough to notice a dead one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Without a byte for this long, the other side is taken for dead.
const READ_TIMEOUT: Duration = Duration::from_mins(1);

/// A client that trusts the system's roots and `ca_pem`, or, when `insecure`, everybody.
///
/// Errors: when `ca_pem` is no PEM certificate.
pub fn http_client(ca_pem: Option<&[u8]>, insecure: bool) -> Result<reqwest::Client, Error> {
    crate::tls::install_provider();
    let mut builder = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .tls_danger_accept_invalid_certs(insecure);
    if let Some(pem) = ca_pem {
        let doing = "reading the CA certificates (PEM expected)";
        let certificates =
            reqwest::Certificate::from_pem_bundle(pem).map_err(|e| Error::new(doing, e))?;
        builder = builder.tls_certs_merge(certificates);
    }
    builder
        .build()
        .map_err(|e| Error::new("building the HTTP client", e))
}
