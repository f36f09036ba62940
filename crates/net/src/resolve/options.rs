//! Files, timeouts and cache times of a resolver.

use std::path::PathBuf;
use std::time::Duration;

/// Files, timeouts and cache times of a resolver.
#[derive(Debug, Clone)]
pub struct ResolverOptions {
    /// The file of the name servers.
    pub resolv_conf: PathBuf,
    /// The file of known hosts, for which no server is queried.
    pub hosts: PathBuf,
    /// Cache time of addresses of any TTL: the servers of container networks say a day, and replicas
    /// come and go in seconds.
    pub max_age: Duration,
    /// Cache time of a name that does not exist.
    pub absent_age: Duration,
    /// Timeout of one query to one server.
    pub timeout: Duration,
    /// Attempts while no server gives a usable answer.
    pub attempts: u32,
    /// Backoff before the second attempt; it grows linearly.
    pub pause: Duration,
}

impl Default for ResolverOptions {
    fn default() -> Self {
        Self {
            resolv_conf: "/etc/resolv.conf".into(),
            hosts: "/etc/hosts".into(),
            max_age: Duration::from_secs(2),
            absent_age: Duration::from_millis(500),
            timeout: Duration::from_secs(2),
            attempts: 3,
            pause: Duration::from_millis(100),
        }
    }
}
