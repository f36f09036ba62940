//! A request's body on its way to a replica, so that its beginning can be sent again to another one.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use hyper::body::{Body as _, Bytes, Frame, SizeHint};
use tokio_util::sync::CancellationToken;

/// Units: bytes. Requests that are repeated are small documents; uploads are not held in memory for that.
pub(super) const REPEATABLE_BYTES: usize = 64 * 1024;
/// How long the body of a request that expects `100 Continue` waits for it. Source: RFC 9110 §10.1.1, which
/// forbids to wait for ever.
const CONTINUE_TIMEOUT: Duration = Duration::from_secs(1);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request, for as many attempts as it allows.
#[derive(Clone)]
pub(super) struct Source(Arc<Mutex<State>>);

struct State {
    body: Body,
    /// What has been sent, while it is little enough to be sent again.
    sent: Vec<Bytes>,
    sent_bytes: usize,
    is_repeatable: bool,
    has_ended: bool,
    has_failed: bool,
    attempt: usize,
}

impl Source {
    pub(super) fn new(body: Body) -> Self {
        Self(Arc::new(Mutex::new(State {
            has_ended: body.is_end_stream(),
            body,
            sent: Vec::new(),
            sent_bytes: 0,
            is_repeatable: true,
            has_failed: false,
            attempt: 0,
        })))
    }

    /// The body from its beginning; earlier attempts get no more of it. With `expected`, it waits until that is
    /// cancelled, or for a bounded time.
    pub(super) fn attempt(&self, expected: Option<CancellationToken>) -> Outgoing {
        let mut state = self.lock();
        state.attempt += 1;
        // A client that has begun to send does not wait any more.
        let is_fresh = state.sent_bytes == 0 && state.is_repeatable;
        Outgoing {
            attempt: state.attempt,
            next: 0,
            gate: expected
                .filter(|_| is_fresh)
                .map(|token| Box::pin(gate(token)) as _),
            source: Some(self.clone()),
        }
    }

    /// Reads a body that is small enough to be repeated, so that a slow client keeps no place at the upstream. It ends
    /// early when the client breaks off.
    pub(super) async fn read_ahead(&self) {
        std::future::poll_fn(|cx| {
            let mut state = self.lock();
            while !state.has_ended && !state.has_failed && state.is_repeatable {
                ready!(state.poll_next(cx));
            }
            Poll::Ready(())
        })
        .await;
    }

    /// Whether the whole body is known and has at most `bytes`.
    pub(super) fn is_within(&self, bytes: usize) -> bool {
        let state = self.lock();
        (state.has_ended || state.body.is_end_stream()) && state.sent_bytes <= bytes
    }

    /// Whether the body can still be sent from its beginning.
    pub(super) fn is_repeatable(&self) -> bool {
        let state = self.lock();
        state.is_repeatable && !state.has_failed
    }

    /// Whether nothing of the body is left to be sent.
    pub(super) fn has_ended(&self) -> bool {
        let state = self.lock();
        state.has_ended || state.body.is_end_stream()
    }

    /// Whether the client broke off.
    pub(super) fn has_failed(&self) -> bool {
        self.lock().has_failed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn gate(expected: CancellationToken) {
    tokio::time::timeout(CONTINUE_TIMEOUT, expected.cancelled())
        .await
        .ok();
}

/// One attempt to send a body.
pub(super) struct Outgoing {
    attempt: usize,
    /// Index of the next piece among those that were sent before.
    next: usize,
    gate: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    source: Option<Source>,
}

impl Outgoing {
    /// No body at all.
    pub(super) fn empty() -> Self {
        Self {
            attempt: 0,
            next: 0,
            gate: None,
            source: None,
        }
    }
}

impl State {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &polled {
            None => self.has_ended = true,
            Some(Err(_)) => self.has_failed = true,
            Some(Ok(frame)) => self.keep(frame),
        }
        Poll::Ready(polled.map(|frame| frame.map_err(Into::into)))
    }

    fn keep(&mut self, frame: &Frame<Bytes>) {
        let kept = frame
            .data_ref()
            .filter(|data| self.is_repeatable && self.sent_bytes + data.len() <= REPEATABLE_BYTES);
        if let Some(data) = kept {
            self.sent_bytes += data.len();
            self.sent.push(data.clone());
        } else {
            self.is_repeatable = false;
            self.sent = Vec::new();
        }
    }
}

impl hyper::body::Body for Outgoing {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(gate) = &mut self.gate {
            ready!(gate.as_mut().poll(cx));
            self.gate = None;
        }
        let Some(source) = self.source.clone() else {
            return Poll::Ready(None);
        };
        let mut state = source.lock();
        if state.attempt != self.attempt {
            return Poll::Ready(Some(Err("another replica gets the request".into())));
        }
        if let Some(data) = state.sent.get(self.next) {
            self.next += 1;
            return Poll::Ready(Some(Ok(Frame::data(data.clone()))));
        }
        if state.has_ended {
            return Poll::Ready(None);
        }
        let polled = ready!(state.poll_next(cx));
        self.next = state.sent.len();
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        let Some(source) = &self.source else {
            return true;
        };
        let state = source.lock();
        self.next == state.sent.len() && (state.has_ended || state.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        if self.source.is_none() {
            SizeHint::with_exact(0)
        } else {
            SizeHint::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    fn next(body: &mut Outgoing) -> Poll<Option<Result<Bytes, String>>> {
        let mut cx = Context::from_waker(Waker::noop());
        let polled = ready!(hyper::body::Body::poll_frame(Pin::new(body), &mut cx));
        Poll::Ready(polled.map(|frame| match frame {
            Ok(frame) => frame.into_data().map_err(|_| "trailers".to_owned()),
            Err(error) => Err(error.to_string()),
        }))
    }

    fn whole(body: &mut Outgoing) -> Vec<u8> {
        let mut read = Vec::new();
        while let Poll::Ready(Some(data)) = next(body) {
            read.extend(data.unwrap());
        }
        assert!(body.is_end_stream());
        read
    }

    #[test]
    fn a_small_body_can_be_sent_again_and_again() {
        let source = Source::new(Body::from("content"));
        assert!(!source.has_ended());
        for _ in 0..3 {
            assert!(source.is_repeatable());
            assert_eq!(whole(&mut source.attempt(None)), b"content");
            assert!(source.has_ended());
        }
    }

    #[test]
    fn a_large_body_can_be_sent_again_until_it_is_touched() {
        let content = vec![7; REPEATABLE_BYTES + 1];
        let source = Source::new(Body::from(content.clone()));
        drop(source.attempt(None));
        assert!(source.is_repeatable());
        assert_eq!(whole(&mut source.attempt(None)), content);
        assert!(!source.is_repeatable());
        assert!(source.lock().sent.is_empty(), "nothing is held for nothing");
    }

    #[tokio::test]
    async fn a_body_that_was_read_ahead_is_sent_whole() {
        let content = vec![7; REPEATABLE_BYTES];
        let source = Source::new(Body::from(content.clone()));
        source.read_ahead().await;
        assert!(source.is_repeatable() && source.has_ended());
        assert!(source.is_within(REPEATABLE_BYTES));
        assert!(!source.is_within(REPEATABLE_BYTES - 1));
        for _ in 0..2 {
            assert_eq!(whole(&mut source.attempt(None)), content);
        }
    }

    #[test]
    fn an_earlier_attempt_gets_no_more() {
        let source = Source::new(Body::from("content"));
        let mut first = source.attempt(None);
        let mut second = source.attempt(None);
        assert!(matches!(next(&mut first), Poll::Ready(Some(Err(_)))));
        assert_eq!(whole(&mut second), b"content");
    }

    #[test]
    fn no_body_has_ended_before_it_begins() {
        let source = Source::new(Body::empty());
        assert!(source.has_ended());
        assert!(source.attempt(None).is_end_stream());
        assert!(Outgoing::empty().is_end_stream());
    }

    #[tokio::test]
    async fn an_expected_body_waits_until_it_is_asked_for() {
        let source = Source::new(Body::from("content"));
        let asked_for = CancellationToken::new();
        let mut body = source.attempt(Some(asked_for.clone()));
        assert!(next(&mut body).is_pending());
        asked_for.cancel();
        assert_eq!(whole(&mut body), b"content");
        // The client does not hold it back any more.
        let mut again = source.attempt(Some(CancellationToken::new()));
        assert_eq!(whole(&mut again), b"content");
    }
}
