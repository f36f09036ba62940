//! Sending a request to a replica, and to another one when the first cannot have acted on it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::answer::Lease;
use super::body::Source;
use super::inner::Inner;
use super::pool::Connection;
use super::replica::{Condition, Replica, choose};
use super::socket::FIRST_READ_BYTES;

/// How long a service may think before its answer begins: building log archives takes minutes.
const ANSWER_TIMEOUT: Duration = Duration::from_hours(1);
/// How long a client waits while one replica after the other cannot be reached.
const ATTEMPTS_TIMEOUT: Duration = Duration::from_secs(5);
/// Units: bytes. Bodies of requests that a server reads at once, their heads included.
const SMALL_BODY_BYTES: usize = FIRST_READ_BYTES / 2;

/// Why no answer came.
#[derive(Debug)]
pub(super) enum Failure {
    /// The name has no known address.
    NoReplica,
    /// None of that many replicas accepts connections.
    Unreachable(usize),
    /// The connection broke over the request.
    Broken,
    /// The answer did not begin in time.
    Late,
    /// The client did not send what it had announced.
    Client,
}

/// How one attempt failed.
enum Attempt {
    /// The replica accepts no connection.
    Unreachable,
    /// The replica cannot have acted on the request, or may act on it twice.
    Unread,
    /// As `Unread`, but the replica may have begun to process the request when its connection broke.
    MaybeProcessed,
    Broken,
    Late,
    Client,
}

/// A request that is being sent.
pub(super) struct Sending<'a> {
    inner: &'a Inner,
    parts: Parts,
    body: Source,
    /// Whether acting twice on it is the same as acting once.
    is_idempotent: bool,
    /// Whether it may go over a connection that the other side may just be closing.
    may_reuse: bool,
    has_been_repeated: bool,
    /// Whether replicas that were tried may be asked again when no others are left, over new connections.
    may_return: bool,
    tried: Vec<SocketAddr>,
}

impl<'a> Sending<'a> {
    pub(super) fn new(inner: &'a Inner, parts: Parts, body: Source) -> Self {
        // RFC 9110 calls more methods idempotent; ours answer a second DELETE with 404.
        let is_idempotent = matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS);
        Self {
            may_reuse: is_idempotent || is_small(&parts, &body),
            inner,
            parts,
            body,
            is_idempotent,
            has_been_repeated: false,
            may_return: false,
            tried: Vec::new(),
        }
    }

    pub(super) async fn run(mut self) -> Result<(Response<Incoming>, Lease), Failure> {
        let mut replicas = self.inner.looked_up().await;
        if replicas.is_empty() {
            return Err(Failure::NoReplica);
        }
        let turn = self.inner.turn.fetch_add(1, Ordering::Relaxed);
        let mut deadline = Instant::now() + ATTEMPTS_TIMEOUT;
        let mut last = None;
        loop {
            let Some(replica) = choose(&replicas, turn, &self.tried) else {
                if !std::mem::take(&mut self.may_return) {
                    break;
                }
                self.may_reuse = false;
                self.tried.clear();
                continue;
            };
            if last.is_some() {
                self.inner.metrics.retries.increment(1);
            }
            self.tried.push(replica.address);
            match self.attempt(replica).await {
                Ok(answered) => return Ok(answered),
                Err(failed) if self.is_final(&failed) => {
                    last = Some(failed);
                    break;
                }
                Err(failed) => last = Some(failed),
            }
            if !matches!(last, Some(Attempt::Unreachable)) {
                // The request may have been on that replica for long: begin anew with those that are there now.
                deadline = Instant::now() + ATTEMPTS_TIMEOUT;
                replicas = self.inner.replicas();
            }
            if Instant::now() > deadline {
                break;
            }
        }
        Err(match last {
            Some(Attempt::Unreachable) | None => Failure::Unreachable(replicas.len()),
            Some(Attempt::Unread | Attempt::MaybeProcessed | Attempt::Broken) => Failure::Broken,
            Some(Attempt::Late) => Failure::Late,
            Some(Attempt::Client) => Failure::Client,
        })
    }

    fn is_final(&mut self, failed: &Attempt) -> bool {
        match failed {
            Attempt::Unreachable => false,
            Attempt::Unread => !self.body.is_repeatable(),
            Attempt::MaybeProcessed => self.is_repeated() || !self.body.is_repeatable(),
            Attempt::Broken => {
                let may_repeat = self.is_idempotent && self.body.is_repeatable();
                let is_final = self.is_repeated() || !may_repeat;
                self.may_return |= !is_final;
                is_final
            }
            Attempt::Late | Attempt::Client => true,
        }
    }

    /// Whether it has been sent again already; from now on it has.
    fn is_repeated(&mut self) -> bool {
        std::mem::replace(&mut self.has_been_repeated, true)
    }

    async fn attempt(
        &mut self,
        replica: &Arc<Replica>,
    ) -> Result<(Response<Incoming>, Lease), Attempt> {
        let pooled = self.may_reuse.then(|| replica.pool.take()).flatten();
        let mut connection = match pooled {
            Some(connection) => connection,
            None => match Connection::open(replica.address).await {
                Ok(connection) => connection,
                Err(error) => {
                    tracing::debug!(address = %replica.address, %error, "a replica cannot be reached");
                    self.inner.found(replica, Condition::Unreachable);
                    replica.doubted.notify_one();
                    return Err(Attempt::Unreachable);
                }
            },
        };
        connection.exchange.begin();
        let may_move = self.is_idempotent && !self.has_been_repeated && self.body.is_repeatable();
        let sent = connection.sender.try_send_request(self.request());
        let answered = tokio::select! {
            answered = tokio::time::timeout(ANSWER_TIMEOUT, sent) => answered,
            () = self.inner.frozen(replica), if may_move => return Err(Attempt::Broken),
        };
        match answered {
            Ok(Ok(response)) => {
                let lease = Lease::new(connection, replica.clone(), self.body.clone());
                Ok((response, lease))
            }
            Ok(Err(mut error)) => {
                let is_unsent = error.take_message().is_some();
                let is_unread = is_unsent || connection.exchange.was_unread();
                let error = error.into_error();
                tracing::debug!(address = %replica.address, %error, is_unread, "a replica broke off");
                // That a pooled connection failed says nothing about a new one, but much about other pooled ones.
                self.may_return |= connection.is_reused;
                self.may_reuse &= !connection.is_reused;
                replica.doubted.notify_one();
                Err(match is_unread {
                    _ if self.body.has_failed() => Attempt::Client,
                    true if is_unsent || connection.is_reused || self.is_idempotent => {
                        Attempt::Unread
                    }
                    true => Attempt::MaybeProcessed,
                    false => Attempt::Broken,
                })
            }
            Err(_) => Err(Attempt::Late),
        }
    }

    fn request(&self) -> Request<super::body::Outgoing> {
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

/// Whether a reset will tell that nobody has read it.
fn is_small(parts: &Parts, body: &Source) -> bool {
    let length = parts.headers.get(header::CONTENT_LENGTH);
    let length = length
        .map(HeaderValue::to_str)
        .and_then(|text| text.ok()?.parse().ok());
    body.is_within(SMALL_BODY_BYTES) || length.is_some_and(|bytes: usize| bytes <= SMALL_BODY_BYTES)
}
