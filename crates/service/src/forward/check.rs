//! Looking at replicas: which addresses there are, and which of them are ready.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request, StatusCode, Uri, header};
use hyper::body::{Body as _, Incoming};
use tokio_util::sync::CancellationToken;

use super::body::Outgoing;
use super::inner::Inner;
use super::lookup::Lookup;
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
pub(super) async fn follow(inner: Arc<Inner>, names: Arc<dyn Lookup>, shutdown: CancellationToken) {
    let mut last_error = None;
    loop {
        let looked_up = look_up(&inner, names.as_ref()).await;
        let interval = match looked_up {
            Ok(addresses) => {
                last_error = None;
                update(&inner, &addresses, &shutdown);
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

async fn look_up(inner: &Inner, names: &dyn Lookup) -> Result<BTreeSet<IpAddr>, String> {
    let found = tokio::time::timeout(LOOKUP_TIMEOUT, names.lookup(inner.upstream.host()))
        .await
        .map_err(|_| "no answer in time".to_owned())??;
    if found.is_empty() {
        return Err("the name has no address".to_owned());
    }
    if found.len() > MAX_REPLICAS {
        tracing::warn!(
            upstream = inner.upstream.authority(),
            found = found.len(),
            used = MAX_REPLICAS,
            "a name has too many addresses"
        );
    }
    let sorted: BTreeSet<IpAddr> = found.into_iter().collect();
    Ok(sorted.into_iter().take(MAX_REPLICAS).collect())
}

fn update(inner: &Arc<Inner>, addresses: &BTreeSet<IpAddr>, shutdown: &CancellationToken) {
    let known = inner.replicas();
    let is_same = known.len() == addresses.len()
        && known
            .iter()
            .all(|replica| addresses.contains(&replica.address.ip()));
    if is_same {
        return;
    }
    let upstream = inner.upstream.authority();
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
