//! BMCs by their hosts: two hosts with one BMC would undo each other's power changes.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The host of each BMC, in this process.
#[derive(Debug, Default)]
pub(super) struct BmcClaims {
    hosts: Mutex<HashMap<String, String>>,
}

impl BmcClaims {
    /// Claims a BMC, by its address, and releases the others of this host.
    ///
    /// Errors: the other host that has it.
    pub(super) fn claim(&self, bmc: &str, host: &str) -> Result<(), String> {
        let mut hosts = self.hosts();
        hosts.retain(|known, owner| owner != host || known == bmc);
        let owner = hosts
            .entry(bmc.to_owned())
            .or_insert_with(|| host.to_owned());
        if owner == host {
            Ok(())
        } else {
            Err(owner.clone())
        }
    }

    /// Releases the BMC of a host.
    pub(super) fn release(&self, host: &str) {
        self.hosts().retain(|_, owner| owner != host);
    }

    fn hosts(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bmc_has_one_host_until_it_is_released() {
        let claims = BmcClaims::default();
        assert_eq!(claims.claim("https://10.0.0.1", "a"), Ok(()));
        assert_eq!(claims.claim("https://10.0.0.1", "a"), Ok(()));
        assert_eq!(claims.claim("https://10.0.0.1", "b"), Err("a".to_owned()));
        assert_eq!(claims.claim("https://10.0.0.2", "a"), Ok(()));
        assert_eq!(claims.claim("https://10.0.0.1", "b"), Ok(()));
        claims.release("b");
        assert_eq!(claims.claim("https://10.0.0.1", "c"), Ok(()));
    }
}
