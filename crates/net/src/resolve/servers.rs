//! The order of queries over names and servers, with retries.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hickory_resolver::proto::rr::Name;

use super::ResolverOptions;
use super::error::{Error, Statement};
use super::name::HostName;
use super::query::{self, ServerReply};
use super::resolv_conf::ResolvConf;

/// Timeout of a lookup, a little shorter than the connect timeout of its callers.
const LIMIT: Duration = Duration::from_secs(8);
/// Time that a server counts as dead after a query without a reply …
const DEAD_FOR: Duration = Duration::from_secs(10);
/// … in which its first attempt has this timeout, so that a live server after it is reached soon.
const DEAD_TIMEOUT: Duration = Duration::from_millis(250);

/// Queries servers, and remembers the dead ones.
#[derive(Debug, Default)]
pub(super) struct ServerQueries {
    silent: Mutex<HashMap<SocketAddr, Instant>>,
}

/// Result of the queries for a name, or of one attempt for all names.
enum QueryResult {
    Found(Vec<IpAddr>),
    /// The first server reports that the name does not exist.
    Absent,
    /// No server gave a usable reply.
    Failed,
}

impl ServerQueries {
    pub(super) async fn run(
        &self,
        host: &HostName,
        conf: &ResolvConf,
        options: &ResolverOptions,
    ) -> Result<Vec<IpAddr>, Error> {
        let names = host.candidates(conf);
        let mut statements = Vec::new();
        let attempts = async {
            for attempt in 0..options.attempts {
                if attempt > 0 {
                    tokio::time::sleep(options.pause * attempt).await;
                }
                match self
                    .round(&names, conf, options, attempt, &mut statements)
                    .await
                {
                    QueryResult::Failed => {}
                    round => return round,
                }
            }
            QueryResult::Failed
        };
        let round = tokio::time::timeout(LIMIT, attempts).await;
        let host = host.key().to_owned();
        match round.unwrap_or(QueryResult::Failed) {
            QueryResult::Found(addresses) => Ok(addresses),
            QueryResult::Absent => Err(Error::Unknown { host, statements }),
            QueryResult::Failed => Err(Error::NoAnswer { host, statements }),
        }
    }

    /// Tries the names in order, up to the first one without a usable reply: the next name may be another host, and is
    /// tried in the last attempt only.
    async fn round(
        &self,
        names: &[Name],
        conf: &ResolvConf,
        options: &ResolverOptions,
        attempt: u32,
        statements: &mut Vec<Statement>,
    ) -> QueryResult {
        let mut round = QueryResult::Absent;
        for name in names {
            match self.one(name, conf, options, attempt, statements).await {
                QueryResult::Absent => {}
                QueryResult::Failed if attempt + 1 == options.attempts => {
                    round = QueryResult::Failed;
                }
                decided => return decided,
            }
        }
        round
    }

    async fn one(
        &self,
        name: &Name,
        conf: &ResolvConf,
        options: &ResolverOptions,
        attempt: u32,
        statements: &mut Vec<Statement>,
    ) -> QueryResult {
        for (nth, &server) in conf.servers.iter().enumerate() {
            let wait = self.timeout_for(server, options.timeout, attempt);
            let reply = query::query(server, name, wait).await;
            self.remember(server, matches!(reply, ServerReply::Silent(_)));
            let (text, is_denied) = match reply {
                ServerReply::Addresses(addresses) => return QueryResult::Found(addresses),
                ServerReply::Denied(text) => (text, true),
                ServerReply::Failed(text) | ServerReply::Silent(text) => (text, false),
            };
            note(statements, server, name, text);
            // Only the first server may deny a name: a later one may not know the hosts of one that failed just now.
            if is_denied && nth == 0 {
                return QueryResult::Absent;
            }
        }
        QueryResult::Failed
    }

    fn timeout_for(&self, server: SocketAddr, timeout: Duration, attempt: u32) -> Duration {
        let silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        match silent.get(&server) {
            Some(since) if attempt == 0 && since.elapsed() < DEAD_FOR => timeout.min(DEAD_TIMEOUT),
            _ => timeout,
        }
    }

    fn remember(&self, server: SocketAddr, is_silent: bool) {
        let mut silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_silent {
            silent.remove(&server);
        } else if silent
            .get(&server)
            .is_none_or(|since| since.elapsed() >= DEAD_FOR)
        {
            // The first timeout counts: otherwise a server in frequent use would never get its full timeout again.
            silent.retain(|_, since| since.elapsed() < DEAD_FOR);
            silent.insert(server, Instant::now());
        }
    }
}

/// Replaces the reply of `server` about `name`.
fn note(statements: &mut Vec<Statement>, server: SocketAddr, name: &Name, text: String) {
    let name = name.to_string();
    let known = statements
        .iter_mut()
        .find(|statement| statement.server == server && statement.name == name);
    match known {
        Some(statement) => statement.text = text,
        None => statements.push(Statement { server, name, text }),
    }
}
