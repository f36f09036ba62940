//! Connections to other hosts: name resolution, TLS trust, redirects, and an HTTP client for files.
//!
//! Nothing here knows about images or clusters. The one invariant: every connection resolves its host by
//! [`resolve`], because the C library of static programs queries all name servers at once and takes the first answer.

#[cfg(feature = "certificates")]
pub mod certificate;
pub mod client_tls;
pub mod masks;
pub mod pem;
#[cfg(feature = "http-client")]
pub mod redirect;
pub mod resolve;
pub mod trust;
#[cfg(feature = "http-client")]
pub mod web;
