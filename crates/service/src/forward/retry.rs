//! The attempts of a request: at one replica, and after its failure at another one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::balance::Balance;
use super::connection::{Connection, ExchangeOutcome};
use super::lease::ConnectionLease;
use super::outlier::Outcome;
use super::replay_body::ReplayBody;
use super::replica::{Replica, ReplicaHealth, RequestInFlight, pick};
use super::socket::FIRST_READ_BYTES;

/// Longest time of attempts at replicas that cannot be reached.
const RETRY_DEADLINE: Duration = Duration::from_secs(5);
/// Longest body that a server reads at once with its head. Units: bytes.
const SMALL_BODY_BYTES: usize = FIRST_READ_BYTES / 2;

/// Reason why a request got no response.
#[derive(Debug)]
pub(super) enum ForwardError {
    /// The name has no known address.
    NoReplica,
    /// None of so many replicas accepts connections.
    Unreachable(usize),
    /// The connection broke under the request.
    Broken,
    /// The response did not begin before its timeout.
    Timeout,
    /// The client aborted its request body.
    Client,
}

/// Failure of one attempt.
enum AttemptError {
    /// The replica accepts no connection.
    Unreachable,
    /// The replica has not processed the request, or the request is idempotent.
    Unprocessed,
    /// As `Unprocessed`, but the replica may have begun to process the request when the connection broke.
    MaybeProcessed,
    Broken,
    Timeout,
    Client,
}

/// Retries of one request that a replica may have processed: one.
///
/// Requests do not share it, as they do in tower: a replica that stops drops many at once, and all of them move.
#[derive(Default)]
struct RetryBudget {
    is_spent: bool,
}

impl RetryBudget {
    /// Whether a retry was left.
    fn withdraw(&mut self) -> bool {
        !std::mem::replace(&mut self.is_spent, true)
    }
}

/// A request with its retries.
pub(super) struct Retry<'a> {
    balance: &'a Balance,
    parts: Parts,
    body: ReplayBody,
    is_idempotent: bool,
    /// Whether it may use a pooled connection, which the replica may be closing.
    may_reuse: bool,
    budget: RetryBudget,
    /// Whether tried replicas may be picked again when no others are left, over new connections.
    may_retry_tried: bool,
    tried: Vec<SocketAddr>,
}

impl<'a> Retry<'a> {
    pub(super) fn new(balance: &'a Balance, parts: Parts, body: ReplayBody) -> Self {
        // RFC 9110 §9.2.2 lists more idempotent methods; our servers answer a second DELETE with 404.
        let is_idempotent = matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS);
        Self {
            may_reuse: is_idempotent || is_small(&parts, &body),
            balance,
            parts,
            body,
            is_idempotent,
            budget: RetryBudget::default(),
            may_retry_tried: false,
            tried: Vec::new(),
        }
    }

    pub(super) async fn run(
        mut self,
    ) -> Result<(Response<Incoming>, ConnectionLease), ForwardError> {
        let mut replicas = self.balance.resolved_replicas().await;
        if replicas.is_empty() {
            return Err(ForwardError::NoReplica);
        }
        let round_robin = self.balance.round_robin.fetch_add(1, Ordering::Relaxed);
        let mut deadline = Instant::now() + RETRY_DEADLINE;
        let mut last = None;
        loop {
            let Some(replica) = pick(&replicas, round_robin, &self.tried) else {
                if !std::mem::take(&mut self.may_retry_tried) {
                    break;
                }
                self.may_reuse = false;
                self.tried.clear();
                continue;
            };
            if last.is_some() {
                self.balance.metrics.retries.increment(1);
            }
            self.tried.push(replica.address);
            match self.attempt(replica).await {
                Ok(answered) => return Ok(answered),
                Err(failed) if self.retry(&failed) => last = Some(failed),
                Err(failed) => {
                    last = Some(failed);
                    break;
                }
            }
            if !matches!(last, Some(AttemptError::Unreachable)) {
                // The attempt may have taken long: start over with the current replicas.
                deadline = Instant::now() + RETRY_DEADLINE;
                replicas = self.balance.replicas();
            }
            if Instant::now() > deadline {
                break;
            }
        }
        Err(match last {
            Some(AttemptError::Unreachable) | None => ForwardError::Unreachable(replicas.len()),
            Some(
                AttemptError::Unprocessed | AttemptError::MaybeProcessed | AttemptError::Broken,
            ) => ForwardError::Broken,
            Some(AttemptError::Timeout) => ForwardError::Timeout,
            Some(AttemptError::Client) => ForwardError::Client,
        })
    }

    /// Whether the request may be sent again.
    fn retry(&mut self, failed: &AttemptError) -> bool {
        match failed {
            AttemptError::Unreachable => true,
            AttemptError::Unprocessed => self.body.can_replay(),
            AttemptError::MaybeProcessed => self.budget.withdraw() && self.body.can_replay(),
            AttemptError::Broken => {
                let retry = self.budget.withdraw() && self.is_idempotent && self.body.can_replay();
                self.may_retry_tried |= retry;
                retry
            }
            AttemptError::Timeout | AttemptError::Client => false,
        }
    }

    async fn attempt(
        &mut self,
        replica: &Arc<Replica>,
    ) -> Result<(Response<Incoming>, ConnectionLease), AttemptError> {
        let in_flight = RequestInFlight::new(replica);
        let settings = &self.balance.settings;
        let pooled = self.may_reuse.then(|| replica.pool.take()).flatten();
        let mut connection = match pooled {
            Some(connection) => connection,
            None => match Connection::open(replica.address, settings.forward_connect_timeout).await
            {
                Ok(connection) => connection,
                Err(error) => {
                    tracing::debug!(address = %replica.address, %error, "replica unreachable");
                    // Before its health changes: it is ready, and fails.
                    self.balance.record_outcome(replica, Outcome::Broken);
                    self.balance
                        .record_check(replica, ReplicaHealth::Unreachable);
                    replica.recheck.notify_one();
                    return Err(AttemptError::Unreachable);
                }
            },
        };
        if !self.body.has_ended() {
            connection.detach();
        }
        let may_move = self.is_idempotent && !self.budget.is_spent && self.body.can_replay();
        let answered = tokio::select! {
            biased;
            answered = connection.send(self.clone_request(), settings.forward_response_timeout) => answered,
            () = self.balance.unresponsive(replica), if may_move => return Err(AttemptError::Broken),
        };
        match answered {
            ExchangeOutcome::Unsent => {
                tracing::debug!(address = %replica.address, "replica closed the connection before the request");
                self.may_retry_tried = true;
                self.may_reuse = false;
                Err(AttemptError::Unprocessed)
            }
            ExchangeOutcome::Response(response) => {
                let outcome = Outcome::of(response.status());
                self.balance.record_outcome(replica, outcome);
                let lease = ConnectionLease::new(connection, in_flight, self.body.clone());
                Ok((response, lease))
            }
            ExchangeOutcome::Failed(mut error) => {
                let is_unsent = error.take_message().is_some();
                let is_unprocessed = is_unsent || connection.exchange.was_unprocessed();
                let error = error.into_error();
                tracing::debug!(address = %replica.address, %error, is_unprocessed, "replica closed the connection before its response");
                // Other pooled connections have probably failed, too; a new one may work.
                self.may_retry_tried |= connection.is_reused;
                self.may_reuse &= !connection.is_reused;
                replica.recheck.notify_one();
                // A replica may close an idle connection at any time.
                let is_ordinary = connection.is_reused && is_unprocessed;
                if !is_ordinary && !self.body.has_failed() {
                    self.balance.record_outcome(replica, Outcome::Broken);
                }
                Err(match is_unprocessed {
                    _ if self.body.has_failed() => AttemptError::Client,
                    true if is_unsent || connection.is_reused || self.is_idempotent => {
                        AttemptError::Unprocessed
                    }
                    true => AttemptError::MaybeProcessed,
                    false => AttemptError::Broken,
                })
            }
            ExchangeOutcome::Timeout => {
                self.balance.record_outcome(replica, Outcome::Broken);
                Err(AttemptError::Timeout)
            }
        }
    }

    fn clone_request(&self) -> Request<super::replay_body::AttemptBody> {
        let expects = self
            .parts
            .headers
            .get(header::EXPECT)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        let expected = expects.then(CancellationToken::new);
        let body = self.body.attempt(expected.clone());
        let mut request = Request::from_parts(self.parts.clone(), body);
        if let Some(expected) = expected {
            hyper::ext::on_informational(&mut request, move |informational| {
                if informational.status() == StatusCode::CONTINUE {
                    expected.cancel();
                }
            });
        }
        request
    }
}

/// Whether the request is so short that a reset proves it unread.
fn is_small(parts: &Parts, body: &ReplayBody) -> bool {
    let length = parts.headers.get(header::CONTENT_LENGTH);
    let length = length
        .map(HeaderValue::to_str)
        .and_then(|text| text.ok()?.parse().ok());
    body.is_within(SMALL_BODY_BYTES) || length.is_some_and(|bytes: usize| bytes <= SMALL_BODY_BYTES)
}
