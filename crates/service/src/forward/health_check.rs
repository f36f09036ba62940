//! Active health checks of replicas.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request, StatusCode, Uri, header};
use hyper::body::{Body as _, Incoming};

use super::balance::Balance;
use super::connection::{Connection, ExchangeOutcome};
use super::replay_body::AttemptBody;
use super::replica::{Replica, ReplicaHealth};

/// Health check interval of a ready replica.
const INTERVAL: Duration = Duration::from_secs(2);
/// Health check interval of a replica that is down: requests wait for it.
const DOWN_INTERVAL: Duration = Duration::from_millis(500);
/// Least interval between health checks: each failed request asks for a recheck.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// Timeout of a health check.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Checks the health of one replica periodically.
pub(super) async fn run_checks(balance: Arc<Balance>, replica: Arc<Replica>) {
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
        balance.measure_ejected();
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
    let Ok(mut connection) = Connection::open(replica.address, TIMEOUT).await else {
        return ReplicaHealth::Unreachable;
    };
    let mut request = Request::new(AttemptBody::empty());
    *request.uri_mut() = Uri::from(balance.upstream.ready_path().clone());
    let headers = request.headers_mut();
    // Its address, which every server accepts, and not the name that this server knows it by.
    if let Ok(host) = HeaderValue::from_str(&replica.address.to_string()) {
        headers.insert(header::HOST, host);
    }
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    // Its body is read without the connection.
    connection.detach();
    match connection.send(request, TIMEOUT).await {
        ExchangeOutcome::Response(response) => {
            let status = response.status();
            read_to_end(response.into_body()).await;
            match status {
                StatusCode::OK => ReplicaHealth::Ready,
                status => ReplicaHealth::NotReady(status.as_u16()),
            }
        }
        ExchangeOutcome::Failed(_) | ExchangeOutcome::Unsent | ExchangeOutcome::Timeout => {
            ReplicaHealth::Unresponsive
        }
    }
}

/// A server whose response is not read would log a broken connection at every check.
async fn read_to_end(mut body: Incoming) {
    while let Some(Ok(_)) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {}
}
