//! Reasons for which no file is sent, and their pages.

use std::io;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};

use super::page;
use super::path::PathError;
use super::root::OpenError;

/// Units: seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

/// A request without a file.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    #[error("{0}")]
    Path(#[from] PathError),
    #[error("There is no such file or folder.")]
    NotFound,
    #[error(
        "No downloads have been mirrored yet. They appear here when the folder of static files (FILES_ROOT) has a folder \
         pub/downloads."
    )]
    NoDownloads,
    #[error("This server has no static files: the folder that FILES_ROOT names does not exist.")]
    NoRoot,
    #[error(
        "This file cannot be read by the server, is neither file nor folder, or is a link out of the static files."
    )]
    Forbidden,
    #[error("The server is busy with {0}. Try again in some seconds.")]
    Busy(&'static str),
    #[error("The file is being changed. Try again in some seconds.")]
    Changing,
    #[error("The file cannot be read.")]
    Failed(#[source] io::Error),
}

impl From<OpenError> for FileError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::NoRoot => Self::NoRoot,
            OpenError::NotFound => Self::NotFound,
            OpenError::Forbidden => Self::Forbidden,
            OpenError::Busy => Self::Busy("other files"),
            OpenError::Failed(errno) => Self::Failed(errno.into()),
        }
    }
}

impl IntoResponse for FileError {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::Path(_) => StatusCode::BAD_REQUEST,
            Self::NotFound | Self::NoDownloads | Self::NoRoot => StatusCode::NOT_FOUND,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::Busy(_) | Self::Changing => StatusCode::SERVICE_UNAVAILABLE,
            Self::Failed(error) => {
                tracing::error!(%error, "static file unreadable");
                StatusCode::INTERNAL_SERVER_ERROR
            }
        };
        let mut response = page::message(status, &self.to_string());
        if status == StatusCode::SERVICE_UNAVAILABLE {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, RETRY_AFTER);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_status() {
        for (error, status) in [
            (FileError::Path(PathError::Nul), 400),
            (FileError::NotFound, 404),
            (FileError::NoDownloads, 404),
            (FileError::NoRoot, 404),
            (FileError::Forbidden, 403),
            (FileError::Busy("x"), 503),
            (FileError::Changing, 503),
            (FileError::Failed(io::ErrorKind::Other.into()), 500),
        ] {
            let response = error.into_response();
            assert_eq!(response.status().as_u16(), status);
            let waits = response.headers().contains_key(header::RETRY_AFTER);
            assert_eq!(waits, status == 503);
        }
    }
}
