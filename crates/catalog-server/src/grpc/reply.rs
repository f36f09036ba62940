//! Responses: framed messages from the cache, then trailers.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, header};
use bytes::Bytes;
use catalog::cache::{Damaged, Slices};
use futures_util::{Stream, StreamExt as _, stream};
use http_body::Frame;
use tonic::{Code, Status};

use super::gzip;
use super::metrics::CallInFlight;

const OK: HeaderValue = HeaderValue::from_static("0");
/// Older clients require this header. Source: `opm serve` sends it empty.
const NO_MESSAGE: HeaderValue = HeaderValue::from_static("");

/// A response of `slices`, optionally compressed.
pub(super) fn answer(
    slices: Slices,
    is_compressed: bool,
    measured: CallInFlight,
) -> Response<Body> {
    let mut response = if is_compressed {
        let pieces = gzip::compress(slices);
        Response::new(Body::new(ReplyBody {
            pieces,
            measured: Some(measured),
        }))
    } else {
        let pieces = stream::iter(slices);
        Response::new(Body::new(ReplyBody {
            pieces,
            measured: Some(measured),
        }))
    };
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("application/grpc");
    headers.insert(header::CONTENT_TYPE, kind);
    if is_compressed {
        headers.insert("grpc-encoding", HeaderValue::from_static("gzip"));
    }
    response
}

/// An error response without messages.
pub(super) fn refuse(status: &Status, measured: CallInFlight) -> Response<Body> {
    measured.end(status.code());
    status.clone().into_http()
}

/// Body of pieces, then trailers. Pieces are produced on demand: the connection's flow control is the back-pressure.
struct ReplyBody<S> {
    pieces: S,
    /// `None` after the trailers.
    measured: Option<CallInFlight>,
}

impl<S: Stream<Item = Result<Bytes, Damaged>> + Unpin> http_body::Body for ReplyBody<S> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.measured.is_none() {
            return Poll::Ready(None);
        }
        let piece = std::task::ready!(self.pieces.poll_next_unpin(cx));
        let frame = match piece {
            Some(Ok(piece)) => Frame::data(piece),
            None => {
                self.end(Code::Ok);
                let ok = [("grpc-status", OK), ("grpc-message", NO_MESSAGE)];
                let ok = ok.map(|(name, value)| (header::HeaderName::from_static(name), value));
                Frame::trailers(HeaderMap::from_iter(ok))
            }
            Some(Err(damaged)) => {
                tracing::error!("{damaged}: reply aborted");
                self.end(Code::DataLoss);
                let mut trailers = HeaderMap::new();
                let status = Status::data_loss(damaged.to_string());
                // The message is a valid header value.
                status.add_header(&mut trailers).ok();
                Frame::trailers(trailers)
            }
        };
        Poll::Ready(Some(Ok(frame)))
    }
}

impl<S> ReplyBody<S> {
    fn end(&mut self, code: Code) {
        if let Some(measured) = self.measured.take() {
            measured.end(code);
        }
    }
}
