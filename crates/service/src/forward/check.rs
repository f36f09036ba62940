//! Looking at replicas: which addresses there are, and which of them are ready.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request, StatusCode, Uri, header};
use hyper::body::{Body as _, Incoming};
use net::resolve::Resolver;
use tokio_util::sync::CancellationToken;

use super::body::Outgoing;
use super::inner::Inner;
use super::pool::Connection;
use super::replica::{Condition, Replica};

/// How often a name is looked up; the resolver knows for how long its answers are good.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(1);
/// Long enough for a name server that is away and the next one; the last known replicas are used meanwhile.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(15);
/// How often a ready replica is asked.
const INTERVAL: Duration = Duration::from_secs(2);
/// How often a missing name or replica is looked for: soon, since people wait for it.
const INTERVAL_AWAY: Duration = Duration::from_millis(500);
/// A replica may be doubted by every request: looks have this distance at least.
const INTERVAL_DOUBTED: Duration = Duration::from_millis(100);
/// A ready replica answers at once.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Units: addresses of one name. Each costs a task and connections.
const MAX_REPLICAS: usize = 64;

/// Keeps the replicas equal to what the name stands for, until `shutdown`.
pub(super) async fn follow(inner: Arc<Inner>, names: Resolver, shutdown: CancellationToken) {
    let mut last_error = None;
    loop {
        let looked_up = look_up(&inner, &names).await;
        let interval = match looked_up {
            Ok(addresses) => {
                last_error = None;
                update(&inner, one_family(addresses), &shutdown);
                LOOKUP_INTERVAL
            }
            Err(error) => {
                if last_error.as_ref() != Some(&error) {
                    tracing::warn!(
                        upstream = inner.upstream.authority(),
                        error,
                        "the look-up failed: the last known replicas stay"
                    );
                }
                inner.not_found();
                last_error = Some(error);
                INTERVAL_AWAY
            }
        };
        tokio::time::sleep(interval).await;
    }
}

async fn look_up(inner: &Inner, names: &Resolver) -> Result<Vec<IpAddr>, String> {
    tokio::time::timeout(LOOKUP_TIMEOUT, names.lookup(inner.upstream.host()))
        .await
        .map_err(|_| "no answer in time".to_owned())?
        .map_err(|error| error.to_string())
}

/// The IPv4 addresses, or the others when there are none: a replica with both would be there twice.
fn one_family(mut addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    let has_v4 = addresses.iter().any(IpAddr::is_ipv4);
    addresses.retain(|ip| ip.is_ipv4() == has_v4);
    addresses
}

fn update(inner: &Arc<Inner>, mut addresses: Vec<IpAddr>, shutdown: &CancellationToken) {
    let found = addresses.len();
    addresses.truncate(MAX_REPLICAS);
    let known = inner.replicas();
    let is_same = known.len() == addresses.len()
        && known
            .iter()
            .all(|replica| addresses.contains(&replica.address.ip()));
    if is_same {
        return;
    }
    let upstream = inner.upstream.authority();
    if found > MAX_REPLICAS {
        tracing::warn!(
            upstream,
            found,
            used = MAX_REPLICAS,
            "a name has too many addresses"
        );
    }
    let replicas = addresses
        .iter()
        .map(|ip| {
            let kept = known.iter().find(|replica| replica.address.ip() == *ip);
            kept.cloned().unwrap_or_else(|| {
                let address = SocketAddr::new(*ip, inner.upstream.port());
                tracing::info!(upstream, %address, "a replica is there");
                let replica = Arc::new(Replica::new(address, shutdown.child_token()));
                let watching = watch(inner.clone(), replica.clone());
                tokio::spawn(replica.gone.clone().run_until_cancelled_owned(watching));
                replica
            })
        })
        .collect();
    for replica in known.iter() {
        if !addresses.contains(&replica.address.ip()) {
            tracing::info!(upstream, address = %replica.address, "a replica is gone");
            replica.retire();
        }
    }
    inner.set_replicas(replicas);
}

/// Asks one replica again and again whether it is ready.
async fn watch(inner: Arc<Inner>, replica: Arc<Replica>) {
    loop {
        let condition = tokio::time::timeout(TIMEOUT, ask(&inner, &replica))
            .await
            .unwrap_or(Condition::Silent);
        let before = inner.found(&replica, condition);
        if before == Condition::Silent && condition == Condition::Silent {
            // One look may fail because everything is slow just now.
            replica.frozen.notify_waiters();
        }
        replica.pool.expire();
        let interval = if condition == Condition::Ready {
            INTERVAL
        } else {
            INTERVAL_AWAY
        };
        tokio::time::sleep(INTERVAL_DOUBTED).await;
        tokio::time::timeout(interval, replica.doubted.notified())
            .await
            .ok();
    }
}

/// On a connection of its own: a replica that accepts no new ones is of no use.
async fn ask(inner: &Inner, replica: &Replica) -> Condition {
    let Ok(mut connection) = Connection::open(replica.address).await else {
        return Condition::Unreachable;
    };
    let mut request = Request::new(Outgoing::empty());
    *request.uri_mut() = Uri::from(inner.upstream.ready_path().clone());
    let headers = request.headers_mut();
    if let Ok(host) = HeaderValue::from_str(inner.upstream.authority()) {
        headers.insert(header::HOST, host);
    }
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    match connection.sender.send_request(request).await {
        Ok(response) => {
            let status = response.status();
            read_to_end(response.into_body()).await;
            match status {
                StatusCode::OK => Condition::Ready,
                status => Condition::Answers(status.as_u16()),
            }
        }
        Err(_) => Condition::Silent,
    }
}

/// A server whose answer is not read would log a broken connection at every look.
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
