//! A body with an observer of its frames.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

/// A frame of a body; none at its end.
pub type ObservedFrame<'a> = Option<&'a Result<Frame<Bytes>, axum::Error>>;

/// The `body`, with an observer that sees each frame before the reader. Its state is dropped with the body, which may be
/// before the end.
pub fn observed<S: Send + Unpin + 'static>(
    body: Body,
    state: S,
    on_frame: fn(&mut S, ObservedFrame<'_>),
) -> Body {
    Body::new(ObservedBody {
        body,
        state,
        on_frame,
    })
}

/// Length of the data in a frame. Units: bytes.
pub fn data_length(frame: ObservedFrame<'_>) -> u64 {
    let data = frame.and_then(|frame| frame.as_ref().ok()?.data_ref());
    data.map_or(0, |data| data.len() as u64)
}

struct ObservedBody<S> {
    body: Body,
    state: S,
    on_frame: fn(&mut S, ObservedFrame<'_>),
}

impl<S: Unpin> HttpBody for ObservedBody<S> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        (this.on_frame)(&mut this.state, frame.as_ref());
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
