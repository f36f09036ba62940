//! Responses with a file.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use tokio_util::io::ReaderStream;

use cluster_files::Object;

/// A response with a file name.
#[derive(Debug)]
pub(crate) struct FileResponse {
    name: String,
    length: u64,
    body: Body,
}

impl FileResponse {
    /// A stored object, streamed.
    pub(crate) fn object(name: impl Into<String>, object: Object) -> Self {
        Self {
            name: name.into(),
            length: object.length,
            body: Body::from_stream(ReaderStream::new(object.content)),
        }
    }

    /// A body of known length.
    pub(crate) fn streamed(name: impl Into<String>, length: u64, body: Body) -> Self {
        Self {
            name: name.into(),
            length,
            body,
        }
    }

    /// Bytes in memory.
    pub(crate) fn bytes(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self {
            name: name.into(),
            length: bytes.len() as u64,
            body: Body::from(bytes),
        }
    }
}

impl IntoResponse for FileResponse {
    fn into_response(self) -> Response {
        // Quotes and control characters would break the header.
        let name: String = self
            .name
            .chars()
            .map(|c| {
                if c == '"' || c == '\\' || c.is_control() {
                    '_'
                } else {
                    c
                }
            })
            .collect();
        let disposition = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""))
            .unwrap_or_else(|_| HeaderValue::from_static("attachment"));
        let mut response = Response::new(self.body);
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/octet-stream"),
        );
        headers.insert(header::CONTENT_DISPOSITION, disposition);
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(self.length));
        response
    }
}
