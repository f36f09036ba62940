//! Calls of gRPC clients: frames, and errors in headers.

use axum::http::HeaderMap;

/// gRPC frame header: compression flag and length. Units: bytes.
pub(crate) const PREFIX_BYTES: usize = 5;

/// The gRPC error in headers or trailers.
pub(crate) fn grpc_error(headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let status = text("grpc-status").filter(|status| *status != "0")?;
    let message = text("grpc-message").unwrap_or_default();
    Some(format!("code {status}: {message}"))
}

/// A message with its frame header.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let mut frame = Vec::with_capacity(PREFIX_BYTES + message.len());
    frame.push(0);
    frame.extend(length.to_be_bytes());
    frame.extend(message);
    frame
}
