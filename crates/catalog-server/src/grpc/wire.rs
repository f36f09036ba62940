//! Requests in gRPC framing.

use std::io::Read as _;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Request, header};
use bytes::{Buf as _, Bytes};
use flate2::read::GzDecoder;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use prost::Message;
use tonic::Status;

/// gRPC frame header: compression flag and length. Units: bytes.
pub(super) const FRAME: usize = 5;
/// Header with the compression of messages.
const ENCODING: &str = "grpc-encoding";

/// A unary request.
#[derive(Debug)]
pub(super) struct GrpcCall<M> {
    pub(super) message: M,
    pub(super) metadata: HeaderMap,
    /// Whether the request was compressed; only then is the reply. Source: `opm serve`.
    pub(super) is_compressed: bool,
}

impl<M: Message + Default> GrpcCall<M> {
    /// Reads the single message of `request`.
    ///
    /// Errors: not exactly one message; a message beyond `limit`; malformed protobuf.
    pub(super) async fn read(request: Request<Body>, limit: usize) -> Result<Self, Status> {
        let (head, body) = request.into_parts();
        let encoding = head.headers.get(ENCODING).map(HeaderValue::as_bytes);
        let is_compressed = match encoding {
            None | Some(b"identity") => false,
            Some(b"gzip") => true,
            Some(other) => return Err(unknown_encoding(other)),
        };
        // Longer bodies are read up to the limit only.
        let body = Limited::new(body, limit.saturating_add(FRAME))
            .collect()
            .await;
        let body = body.map_err(|error| {
            if error.downcast_ref::<LengthLimitError>().is_some() {
                too_long(limit)
            } else {
                Status::cancelled("the request was aborted")
            }
        })?;
        let message = message(body.to_bytes(), is_compressed, limit)?;
        let message = M::decode(message)
            .map_err(|error| Status::internal(format!("error unmarshalling request: {error}")))?;
        Ok(Self {
            message,
            metadata: head.headers,
            is_compressed,
        })
    }
}

/// Whether the content type is gRPC's.
pub(super) fn is_call(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let rest = kind.and_then(|kind| kind.strip_prefix(b"application/grpc"));
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
}

fn message(mut body: Bytes, may_be_compressed: bool, limit: usize) -> Result<Bytes, Status> {
    if body.len() < FRAME {
        return Err(Status::internal("the request has no message"));
    }
    let flag = body.get_u8();
    let length = body.get_u32() as usize;
    if length > limit {
        return Err(too_long(limit));
    }
    if length != body.len() {
        return Err(Status::internal(
            "the request must have exactly one message",
        ));
    }
    match (flag, may_be_compressed) {
        (0, _) => Ok(body),
        (1, true) => inflate(&body, limit),
        _ => Err(Status::internal(
            "the compression flag contradicts grpc-encoding",
        )),
    }
}

fn inflate(body: &[u8], limit: usize) -> Result<Bytes, Status> {
    let mut plain = Vec::new();
    let most = (limit as u64).saturating_add(1);
    let read = GzDecoder::new(body).take(most).read_to_end(&mut plain);
    read.map_err(|error| Status::internal(format!("failed to decompress the message: {error}")))?;
    if plain.len() > limit {
        return Err(too_long(limit));
    }
    Ok(plain.into())
}

fn unknown_encoding(encoding: &[u8]) -> Status {
    let encoding = String::from_utf8_lossy(encoding);
    let text = format!("Decompressor is not installed for grpc-encoding {encoding:?}");
    let mut status = Status::unimplemented(text);
    let accepted = tonic::metadata::MetadataValue::from_static("gzip");
    status
        .metadata_mut()
        .insert("grpc-accept-encoding", accepted);
    status
}

fn too_long(limit: usize) -> Status {
    Status::resource_exhausted(format!("received message larger than max {limit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1000;

    fn framed(flag: u8, length: u32, message: &[u8]) -> Bytes {
        [&[flag][..], &length.to_be_bytes(), message]
            .concat()
            .into()
    }

    #[test]
    fn messages_have_the_length_of_their_frame() {
        assert_eq!(&*message(framed(0, 2, b"ab"), false, LIMIT).unwrap(), b"ab");
        for (bad, what) in [
            (framed(0, 3, b"ab"), "shorter"),
            (framed(0, 1, b"ab"), "longer"),
            (framed(1, 2, b"ab"), "compressed, but not announced"),
            (framed(2, 2, b"ab"), "another flag"),
            (framed(0, 0, b"").slice(..4), "half a frame"),
        ] {
            assert_eq!(
                message(bad, false, LIMIT).unwrap_err().code(),
                tonic::Code::Internal,
                "{what}"
            );
        }
        let long = message(framed(0, 1001, b""), false, LIMIT).unwrap_err();
        assert_eq!(long.code(), tonic::Code::ResourceExhausted);
    }

    #[test]
    fn decompression_bombs_are_refused() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut gzip, &[0; LIMIT + 1]).unwrap();
        let small = gzip.finish().unwrap();
        let length = u32::try_from(small.len()).unwrap();
        let much = message(framed(1, length, &small), true, LIMIT).unwrap_err();
        assert_eq!(much.code(), tonic::Code::ResourceExhausted);
        let nonsense = message(framed(1, 3, b"abc"), true, LIMIT).unwrap_err();
        assert_eq!(nonsense.code(), tonic::Code::Internal);
    }
}
