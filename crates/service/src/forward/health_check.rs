//! Discovery of replicas by name, and their active health checks.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request, StatusCode, Uri, header};
use hyper::body::{Body as _, Incoming};
use net::resolve::Resolver;
use tokio_util::sync::CancellationToken;

use super::balance::Balance;
use super::pool::Connection;
use super::replay_body::AttemptBody;
use super::replica::{Replica, ReplicaHealth};

/// How often a name is resolved; the resolver caches its answers.
const RESOLVE_INTERVAL: Duration = Duration::from_secs(1);
/// Long enough for one name server that does not answer and the next one; the last known replicas stay in use.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(15);
/// Health check interval of a ready replica.
const INTERVAL: Duration = Duration::from_secs(2);
/// Health check interval of a replica that is down, and retry interval of a failed resolution: requests wait for it.
const DOWN_INTERVAL: Duration = Duration::from_millis(500);
/// Least interval between health checks: each failed request asks for a recheck.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// Timeout of a health check.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Units: addresses of one name. Each costs a task and connections.
const MAX_REPLICAS: usize = 64;

/// Keeps the replicas equal to the addresses of the upstream's name, until `shutdown`.
pub(super) async fn discover(balance: Arc<Balance>, names: Resolver, shutdown: CancellationToken) {
    let mut last_error = None;
    loop {
        let interval = match resolve(&balance, &names).await {
            Ok(addresses) => {
                last_error = None;
                update(&balance, one_family(addresses), &shutdown);
                RESOLVE_INTERVAL
            }
            Err(error) => {
                if last_error.as_ref() != Some(&error) {
                    tracing::warn!(
                        upstream = balance.upstream.authority(),
                        error,
                        "name resolution failed: the last known replicas stay in use"
                    );
                }
                balance.name_not_resolved();
                last_error = Some(error);
                DOWN_INTERVAL
            }
        };
        tokio::time::sleep(interval).await;
    }
}

async fn resolve(balance: &Balance, names: &Resolver) -> Result<Vec<IpAddr>, String> {
    tokio::time::timeout(RESOLVE_TIMEOUT, names.lookup(balance.upstream.host()))
        .await
        .map_err(|_| "timed out".to_owned())?
        .map_err(|error| error.to_string())
}

/// The IPv4 addresses, or the IPv6 ones when there are none: a replica with both would count twice.
fn one_family(mut addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    let has_v4 = addresses.iter().any(IpAddr::is_ipv4);
    addresses.retain(|ip| ip.is_ipv4() == has_v4);
    addresses
}

fn update(balance: &Arc<Balance>, mut addresses: Vec<IpAddr>, shutdown: &CancellationToken) {
    let found = addresses.len();
    addresses.truncate(MAX_REPLICAS);
    let known = balance.replicas();
    let is_same = known.len() == addresses.len()
        && known
            .iter()
            .all(|replica| addresses.contains(&replica.address.ip()));
    if is_same {
        return;
    }
    let upstream = balance.upstream.authority();
    if found > MAX_REPLICAS {
        tracing::warn!(
            upstream,
            found,
            used = MAX_REPLICAS,
            "too many addresses of a name"
        );
    }
    let replicas = addresses
        .iter()
        .map(|ip| {
            let kept = known.iter().find(|replica| replica.address.ip() == *ip);
            kept.cloned().unwrap_or_else(|| {
                let address = SocketAddr::new(*ip, balance.upstream.port());
                tracing::info!(upstream, %address, "replica added");
                let replica = Arc::new(Replica::new(address, shutdown.child_token()));
                let checks = run_checks(balance.clone(), replica.clone());
                tokio::spawn(replica.retired.clone().run_until_cancelled_owned(checks));
                replica
            })
        })
        .collect();
    for replica in known.iter() {
        if !addresses.contains(&replica.address.ip()) {
            tracing::info!(upstream, address = %replica.address, "replica removed");
            replica.retire();
        }
    }
    balance.set_replicas(replicas);
}

/// Checks the health of one replica periodically.
async fn run_checks(balance: Arc<Balance>, replica: Arc<Replica>) {
    loop {
        let health = tokio::time::timeout(TIMEOUT, probe(&balance, &replica))
            .await
            .unwrap_or(ReplicaHealth::Unresponsive);
        let before = balance.record_check(&replica, health);
        if before == ReplicaHealth::Unresponsive && health == ReplicaHealth::Unresponsive {
            // One check may time out on a machine that is slow for a moment.
            replica.unresponsive.notify_waiters();
        }
        replica.pool.expire();
        let interval = if health == ReplicaHealth::Ready {
            INTERVAL
        } else {
            DOWN_INTERVAL
        };
        tokio::time::sleep(MIN_INTERVAL).await;
        tokio::time::timeout(interval, replica.recheck.notified())
            .await
            .ok();
    }
}

/// One health check, over a new connection: a replica that accepts no new ones is of no use.
async fn probe(balance: &Balance, replica: &Replica) -> ReplicaHealth {
    let Ok(mut connection) = Connection::open(replica.address).await else {
        return ReplicaHealth::Unreachable;
    };
    let mut request = Request::new(AttemptBody::empty());
    *request.uri_mut() = Uri::from(balance.upstream.ready_path().clone());
    let headers = request.headers_mut();
    if let Ok(host) = HeaderValue::from_str(balance.upstream.authority()) {
        headers.insert(header::HOST, host);
    }
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    match connection.sender.send_request(request).await {
        Ok(response) => {
            let status = response.status();
            read_to_end(response.into_body()).await;
            match status {
                StatusCode::OK => ReplicaHealth::Ready,
                status => ReplicaHealth::NotReady(status.as_u16()),
            }
        }
        Err(_) => ReplicaHealth::Unresponsive,
    }
}

/// A server whose response is not read would log a broken connection at every check.
async fn read_to_end(mut body: Incoming) {
    while let Some(Ok(_)) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_with_two_families_counts_once() {
        let chosen = |texts: &[&str]| {
            let addresses = texts.iter().map(|text| text.parse().unwrap()).collect();
            let chosen = one_family(addresses);
            chosen.iter().map(IpAddr::to_string).collect::<Vec<_>>()
        };
        let both = chosen(&["10.0.0.1", "10.0.0.2", "fd00::1", "fd00::2"]);
        assert_eq!(both, ["10.0.0.1", "10.0.0.2"]);
        assert_eq!(chosen(&["fd00::1", "fd00::2"]), ["fd00::1", "fd00::2"]);
    }
}
