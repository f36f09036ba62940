//! Errors of downloads.

use std::io;

use model::Error;
use reqwest::StatusCode;

/// Failure of a download.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DownloadError {
    /// The URL cannot be used.
    #[error("{0:?} is no URL with http, https or oci")]
    Url(String),
    /// The server cannot be reached or the connection broke.
    #[error("the server cannot be reached, or the connection broke")]
    Connection(#[source] reqwest::Error),
    /// The server refuses.
    #[error("the server answered {0}")]
    Status(StatusCode),
    /// Fewer or more bytes than announced.
    #[error("received {found} of {announced} announced bytes")]
    Length {
        /// Units: bytes.
        found: u64,
        /// Units: bytes.
        announced: u64,
    },
    /// The registry's, or the reference is malformed.
    #[error(transparent)]
    Registry(#[from] Error),
    /// The artifact is no live image.
    #[error("{0}")]
    Artifact(String),
    /// The container image has no live image of the architecture, or a malformed checksum.
    #[error("{0}")]
    Payload(String),
    /// The live image of a container image differs from its checksum.
    #[error(
        "{image} has SHA-256 {found} instead of {expected} of {listed_in}: mirror the image again"
    )]
    Checksum {
        /// Path and image.
        image: String,
        found: String,
        expected: String,
        /// Path of the file with the checksum.
        listed_in: String,
    },
    /// The image passes the bound.
    #[error(
        "it has more than {limit} bytes, the MAX_OS_IMAGE_BYTES of one image: raise that, or correct the url"
    )]
    TooLarge {
        /// Units: bytes.
        limit: u64,
    },
    /// The file system would have less free space than the reserve.
    #[error(
        "{path} would leave {free} free bytes, less than the OS_IMAGE_RESERVE_BYTES of {reserve}: free some space, or \
         enlarge the disk"
    )]
    NoSpace {
        /// The file.
        path: String,
        /// Units: bytes.
        free: u64,
        /// Units: bytes.
        reserve: u64,
    },
    /// The file system refuses.
    #[error("writing {path}")]
    Disk {
        /// The file.
        path: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
}
