//! Addresses of the database: fixed, or resolved from a name each time.

use std::net::IpAddr;

use net::resolve::{Error, Resolver};
use sqlx::postgres::{PgConnectOptions, PgSslMode};

/// Host of the database.
#[derive(Debug)]
pub(super) struct Location {
    /// Options with the configured host.
    options: PgConnectOptions,
    /// Resolver; none for a fixed address.
    resolver: Option<Resolver>,
}

impl Location {
    pub(super) fn new(options: PgConnectOptions, resolver: Resolver) -> Self {
        let host = options.get_host();
        // With verify-full the driver compares the certificate with the host it connects to: the name stays in the
        // options, and the system resolves it.
        let is_verified = matches!(options.get_ssl_mode(), PgSslMode::VerifyFull);
        let is_name = !host.starts_with('/') && host.parse::<IpAddr>().is_err();
        Self {
            resolver: (is_name && !is_verified).then_some(resolver),
            options,
        }
    }

    /// Connect options for each address; `current`, which worked before, is first.
    pub(super) async fn candidates(&self, current: &str) -> Result<Vec<PgConnectOptions>, Error> {
        let Some(resolver) = &self.resolver else {
            return Ok(vec![self.options.clone()]);
        };
        let mut addresses = resolver.lookup(self.options.get_host()).await?;
        addresses.sort_by_key(|address| address.to_string() != current);
        let candidates = addresses
            .iter()
            .map(|address| self.options.clone().host(&address.to_string()));
        Ok(candidates.collect())
    }

    /// Whether the name resolves, and no longer to `current`.
    pub(super) async fn has_moved_from(&self, current: &str) -> bool {
        let Some(resolver) = &self.resolver else {
            return false;
        };
        let found = resolver.lookup(self.options.get_host()).await;
        found.is_ok_and(|addresses| {
            let mut addresses = addresses.iter();
            addresses.all(|address| address.to_string() != current)
        })
    }
}
