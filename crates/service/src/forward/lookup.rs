//! Which addresses a name stands for, asked again and again: replicas come and go.

use std::net::IpAddr;
use std::pin::Pin;

use oci::resolve::Resolver;

/// Finds the addresses of a name.
pub trait Lookup: Send + Sync + 'static {
    /// Every address of `host`; an address stands for itself. The error is for an operator.
    fn lookup<'a>(&'a self, host: &'a str) -> Found<'a>;
}

/// What [`Lookup::lookup`] gives.
pub type Found<'a> = Pin<Box<dyn Future<Output = Result<Vec<IpAddr>, String>> + Send + 'a>>;

impl Lookup for Resolver {
    fn lookup<'a>(&'a self, host: &'a str) -> Found<'a> {
        Box::pin(async move {
            Self::lookup(self, host)
                .await
                .map_err(|error| error.to_string())
        })
    }
}
