//! Request bodies that a retry can send again from their start.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use hyper::body::{Body as _, Bytes, Frame, SizeHint};
use tokio_util::sync::CancellationToken;

/// Longest body that is buffered for a retry. Units: bytes. Small documents fit; uploads stay out of memory.
pub(super) const MAX_REPLAY_BYTES: usize = 64 * 1024;
/// Longest wait for `100 Continue` before the body is sent. Source: RFC 9110 §10.1.1, which forbids an indefinite
/// wait.
const CONTINUE_TIMEOUT: Duration = Duration::from_secs(1);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request, shared by its attempts.
#[derive(Clone)]
pub(super) struct ReplayBody(Arc<Mutex<ReplayState>>);

struct ReplayState {
    body: Body,
    /// Replay buffer: the data sent so far, empty once it exceeds [`MAX_REPLAY_BYTES`].
    sent: Vec<Bytes>,
    sent_bytes: usize,
    can_replay: bool,
    has_ended: bool,
    has_failed: bool,
    attempt: usize,
}

impl ReplayBody {
    pub(super) fn new(body: Body) -> Self {
        Self(Arc::new(Mutex::new(ReplayState {
            has_ended: body.is_end_stream(),
            body,
            sent: Vec::new(),
            sent_bytes: 0,
            can_replay: true,
            has_failed: false,
            attempt: 0,
        })))
    }

    /// The body from its start; earlier attempts fail from now on. With `expected`, it waits for `100 Continue`, which
    /// cancels that token, at most [`CONTINUE_TIMEOUT`].
    pub(super) fn attempt(&self, expected: Option<CancellationToken>) -> AttemptBody {
        let mut state = self.lock();
        state.attempt += 1;
        // A client that has begun to send no longer waits for `100 Continue`.
        let is_fresh = state.sent_bytes == 0 && state.can_replay;
        AttemptBody {
            attempt: state.attempt,
            next: 0,
            gate: expected
                .filter(|_| is_fresh)
                .map(|token| Box::pin(gate(token)) as _),
            source: Some(self.clone()),
        }
    }

    /// Buffers a body that can be replayed, so that a slow client holds no permit of the upstream. Ends early when the
    /// client aborts.
    pub(super) async fn read_ahead(&self) {
        std::future::poll_fn(|cx| {
            let mut state = self.lock();
            while !state.has_ended && !state.has_failed && state.can_replay {
                ready!(state.poll_next(cx));
            }
            Poll::Ready(())
        })
        .await;
    }

    /// Whether the whole body is buffered and has at most `bytes`.
    pub(super) fn is_within(&self, bytes: usize) -> bool {
        let state = self.lock();
        (state.has_ended || state.body.is_end_stream()) && state.sent_bytes <= bytes
    }

    /// Whether the body can still be sent from its start.
    pub(super) fn can_replay(&self) -> bool {
        let state = self.lock();
        state.can_replay && !state.has_failed
    }

    /// Whether the whole body has been read.
    pub(super) fn has_ended(&self) -> bool {
        let state = self.lock();
        state.has_ended || state.body.is_end_stream()
    }

    /// Whether the client aborted.
    pub(super) fn has_failed(&self) -> bool {
        self.lock().has_failed
    }

    fn lock(&self) -> MutexGuard<'_, ReplayState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn gate(expected: CancellationToken) {
    tokio::time::timeout(CONTINUE_TIMEOUT, expected.cancelled())
        .await
        .ok();
}

/// One attempt to send a body.
pub(super) struct AttemptBody {
    attempt: usize,
    /// Index of the next chunk in the replay buffer.
    next: usize,
    gate: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    source: Option<ReplayBody>,
}

impl AttemptBody {
    /// An empty body.
    pub(super) fn empty() -> Self {
        Self {
            attempt: 0,
            next: 0,
            gate: None,
            source: None,
        }
    }
}

impl ReplayState {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &polled {
            None => self.has_ended = true,
            Some(Err(_)) => self.has_failed = true,
            Some(Ok(frame)) => self.buffer(frame),
        }
        Poll::Ready(polled.map(|frame| frame.map_err(Into::into)))
    }

    fn buffer(&mut self, frame: &Frame<Bytes>) {
        let data = frame
            .data_ref()
            .filter(|data| self.can_replay && self.sent_bytes + data.len() <= MAX_REPLAY_BYTES);
        if let Some(data) = data {
            self.sent_bytes += data.len();
            self.sent.push(data.clone());
        } else {
            self.can_replay = false;
            self.sent = Vec::new();
        }
    }
}

impl hyper::body::Body for AttemptBody {
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

    fn next(body: &mut AttemptBody) -> Poll<Option<Result<Bytes, String>>> {
        let mut cx = Context::from_waker(Waker::noop());
        let polled = ready!(hyper::body::Body::poll_frame(Pin::new(body), &mut cx));
        Poll::Ready(polled.map(|frame| match frame {
            Ok(frame) => frame.into_data().map_err(|_| "trailers".to_owned()),
            Err(error) => Err(error.to_string()),
        }))
    }

    fn whole(body: &mut AttemptBody) -> Vec<u8> {
        let mut read = Vec::new();
        while let Poll::Ready(Some(data)) = next(body) {
            read.extend(data.unwrap());
        }
        assert!(body.is_end_stream());
        read
    }

    #[test]
    fn a_small_body_can_be_replayed() {
        let source = ReplayBody::new(Body::from("content"));
        assert!(!source.has_ended());
        for _ in 0..3 {
            assert!(source.can_replay());
            assert_eq!(whole(&mut source.attempt(None)), b"content");
            assert!(source.has_ended());
        }
    }

    #[test]
    fn a_large_body_can_be_replayed_until_it_is_read() {
        let content = vec![7; MAX_REPLAY_BYTES + 1];
        let source = ReplayBody::new(Body::from(content.clone()));
        drop(source.attempt(None));
        assert!(source.can_replay());
        assert_eq!(whole(&mut source.attempt(None)), content);
        assert!(!source.can_replay());
        assert!(source.lock().sent.is_empty(), "the replay buffer is freed");
    }

    #[tokio::test]
    async fn a_body_that_was_read_ahead_is_sent_whole() {
        let content = vec![7; MAX_REPLAY_BYTES];
        let source = ReplayBody::new(Body::from(content.clone()));
        source.read_ahead().await;
        assert!(source.can_replay() && source.has_ended());
        assert!(source.is_within(MAX_REPLAY_BYTES));
        assert!(!source.is_within(MAX_REPLAY_BYTES - 1));
        for _ in 0..2 {
            assert_eq!(whole(&mut source.attempt(None)), content);
        }
    }

    #[test]
    fn a_new_attempt_fails_the_previous_one() {
        let source = ReplayBody::new(Body::from("content"));
        let mut first = source.attempt(None);
        let mut second = source.attempt(None);
        assert!(matches!(next(&mut first), Poll::Ready(Some(Err(_)))));
        assert_eq!(whole(&mut second), b"content");
    }

    #[test]
    fn an_empty_body_is_at_its_end() {
        let source = ReplayBody::new(Body::empty());
        assert!(source.has_ended());
        assert!(source.attempt(None).is_end_stream());
        assert!(AttemptBody::empty().is_end_stream());
    }

    #[tokio::test]
    async fn an_expected_body_waits_for_100_continue() {
        let source = ReplayBody::new(Body::from("content"));
        let expected = CancellationToken::new();
        let mut body = source.attempt(Some(expected.clone()));
        assert!(next(&mut body).is_pending());
        expected.cancel();
        assert_eq!(whole(&mut body), b"content");
        // The client has begun to send.
        let mut again = source.attempt(Some(CancellationToken::new()));
        assert_eq!(whole(&mut again), b"content");
    }
}
