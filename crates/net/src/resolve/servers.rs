//! The order of queries over names and servers, with retries.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hickory_resolver::proto::rr::Name;
use moka::sync::Cache;

use super::error::Error;
use super::name::candidates;
use super::options::ResolverOptions;
use super::query::{Refusal, query};
use super::resolv_conf::{PORT, ResolvConf};

/// Timeout of a lookup, a little shorter than the connect timeout of its callers.
const LIMIT: Duration = Duration::from_secs(8);
/// Time that a server counts as dead after a query without a reply …
const DEAD_FOR: Duration = Duration::from_secs(10);
/// … in which its first attempt has this timeout, so that a live server after it is reached soon.
const DEAD_TIMEOUT: Duration = Duration::from_millis(250);
/// Limit of dead servers.
const MAX_DEAD: u64 = 16;

/// Servers without a reply to one of the last queries.
#[derive(Debug, Clone)]
pub(super) struct DeadServers(Cache<SocketAddr, ()>);

impl Default for DeadServers {
    fn default() -> Self {
        let servers = Cache::builder().max_capacity(MAX_DEAD);
        Self(servers.time_to_live(DEAD_FOR).build())
    }
}

/// A lookup in progress.
struct Lookup<'a> {
    conf: &'a ResolvConf,
    options: &'a ResolverOptions,
    dead: &'a DeadServers,
    /// The last reply of each server about each name.
    replies: Vec<(SocketAddr, Name, Refusal)>,
}

enum LookupFailure {
    /// The first server denies the name.
    Unknown,
    /// No server gave a usable reply.
    NoAnswer,
}

type LookupResult = Result<Vec<IpAddr>, LookupFailure>;

/// The addresses of `host`, at least one.
pub(super) async fn lookup(
    host: &Name,
    conf: &ResolvConf,
    options: &ResolverOptions,
    dead: &DeadServers,
) -> Result<Vec<IpAddr>, Error> {
    let mut lookup = Lookup {
        conf,
        options,
        dead,
        replies: Vec::new(),
    };
    let found = tokio::time::timeout(LIMIT, lookup.attempts(host)).await;
    let (host, replies) = (host.to_string(), lookup.replies());
    match found {
        Ok(Ok(addresses)) => Ok(addresses),
        Ok(Err(LookupFailure::Unknown)) => Err(Error::Unknown { host, replies }),
        Ok(Err(LookupFailure::NoAnswer)) | Err(_) => Err(Error::NoAnswer { host, replies }),
    }
}

impl Lookup<'_> {
    /// Tries the names in order, up to the first one without a usable reply: the next name may be another host, and is
    /// tried in the last attempt only.
    async fn attempts(&mut self, host: &Name) -> LookupResult {
        let names = candidates(host, self.conf);
        for attempt in 1..=self.options.attempts {
            if attempt > 1 {
                tokio::time::sleep(self.options.pause * (attempt - 1)).await;
            }
            let mut is_denied = true;
            for name in &names {
                match self.query(name, attempt == 1).await {
                    Ok(addresses) => return Ok(addresses),
                    Err(LookupFailure::Unknown) => continue,
                    Err(LookupFailure::NoAnswer) => is_denied = false,
                }
                if attempt < self.options.attempts {
                    break;
                }
            }
            if is_denied {
                return Err(LookupFailure::Unknown);
            }
        }
        Err(LookupFailure::NoAnswer)
    }

    /// Queries the servers in order.
    async fn query(&mut self, name: &Name, is_first_attempt: bool) -> LookupResult {
        for (nth, &server) in self.conf.servers.iter().enumerate() {
            let is_dead = is_first_attempt && self.dead.0.contains_key(&server);
            let limit = if is_dead { DEAD_TIMEOUT } else { LIMIT };
            let reply = query(server, name, self.options.timeout.min(limit)).await;
            if matches!(reply, Err(Refusal::Silent(_))) {
                // The first timeout counts: otherwise a server in frequent use would never get its full timeout again.
                self.dead.0.get_with(server, || ());
            } else {
                self.dead.0.invalidate(&server);
            }
            let refusal = match reply {
                Ok(addresses) => return Ok(addresses),
                Err(refusal) => refusal,
            };
            // Only the first server may deny a name: a later one may not know the hosts of one that failed just now.
            let is_denied = nth == 0 && matches!(refusal, Refusal::NoName | Refusal::NoAddress);
            self.replies
                .retain(|(other, about, _)| *other != server || about != name);
            self.replies.push((server, name.clone(), refusal));
            if is_denied {
                return Err(LookupFailure::Unknown);
            }
        }
        Err(LookupFailure::NoAnswer)
    }

    fn replies(&self) -> String {
        let replies = self.replies.iter().map(|(server, name, refusal)| {
            if server.port() == PORT {
                format!("{} {refusal} ({name})", server.ip())
            } else {
                format!("{server} {refusal} ({name})")
            }
        });
        replies.collect::<Vec<_>>().join("; ")
    }
}
