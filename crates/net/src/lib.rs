//! How other hosts are reached: name resolution, TLS trust, and an HTTP client for files.
//!
//! Nothing here knows about images or clusters. The one invariant: every connection looks its host up with
//! [`resolve`], because the C library of static programs asks all name servers at once and takes the first answer.

pub mod resolve;
pub mod trust;
pub mod web;
