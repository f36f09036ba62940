//! Where the database is: a fixed place, or a name whose addresses change while the program runs.

use std::net::IpAddr;

use net::resolve::{Error, Resolver};
use sqlx::postgres::{PgConnectOptions, PgSslMode};

#[derive(Debug)]
pub(super) struct Location {
    /// With the host as it was set.
    options: PgConnectOptions,
    /// Knows the addresses; none when the place is fixed.
    resolver: Option<Resolver>,
}

impl Location {
    pub(super) fn new(options: PgConnectOptions, resolver: Resolver) -> Self {
        let host = options.get_host();
        // The certificate names the host, and it is checked against what the connection is told: a name that is to be
        // verified is left to the system to look up.
        let is_verified = matches!(options.get_ssl_mode(), PgSslMode::VerifyFull);
        let is_name = !host.starts_with('/') && host.parse::<IpAddr>().is_err();
        Self {
            resolver: (is_name && !is_verified).then_some(resolver),
            options,
        }
    }

    /// Where to try, the address `current` first: it worked before.
    pub(super) async fn places(&self, current: &str) -> Result<Vec<PgConnectOptions>, Error> {
        let Some(resolver) = &self.resolver else {
            return Ok(vec![self.options.clone()]);
        };
        let mut addresses = resolver.lookup(self.options.get_host()).await?;
        addresses.sort_by_key(|address| address.to_string() != current);
        let places = addresses
            .iter()
            .map(|address| self.options.clone().host(&address.to_string()));
        Ok(places.collect())
    }

    /// Whether the name is known to lead elsewhere than to `current` now.
    pub(super) async fn has_left(&self, current: &str) -> bool {
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
