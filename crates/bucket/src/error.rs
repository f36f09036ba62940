//! Errors of requests to a bucket.

use object_store::Error;

/// Statuses and codes of refused credentials. Source: S3, error responses.
const DENIALS: [&str; 5] = [
    "401 Unauthorized",
    "403 Forbidden",
    "AccessDenied",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
];

/// The result of a request.
pub type BucketResult<T> = std::result::Result<T, BucketError>;

type BucketSource = Box<dyn std::error::Error + Send + Sync>;

/// Why a request to a bucket failed.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    /// It does not answer, or refuses with a transient failure.
    #[error("the bucket does not answer")]
    Unavailable(#[source] BucketSource),
    /// The bucket itself is missing.
    #[error("the bucket does not exist")]
    Missing,
    /// The credentials are unknown, or may not do this.
    #[error("the bucket refuses the credentials")]
    Denied(#[source] BucketSource),
    /// The storage behind it is full, or its quota is used.
    #[error("the bucket is full")]
    Full(#[source] BucketSource),
    /// An object is larger than its reader accepts.
    #[error("{key}: {size} bytes exceed the limit of {limit}")]
    TooLarge {
        /// Its key.
        key: String,
        /// Units: bytes.
        size: u64,
        /// Units: bytes.
        limit: u64,
    },
}

impl From<Error> for BucketError {
    fn from(error: Error) -> Self {
        if is_full(&error) {
            return Self::Full(error.into());
        }
        match error {
            _ if has(&error, &["NoSuchBucket"]) => Self::Missing,
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
                Self::Denied(error.into())
            }
            // Listings report no kind.
            _ if has(&error, &DENIALS) => Self::Denied(error.into()),
            _ => Self::Unavailable(error.into()),
        }
    }
}

/// Whether S3 itself reports the object as missing; not a missing bucket, and not a 404 of a proxy in between.
pub(crate) fn is_absent(error: &Error) -> bool {
    let Error::NotFound { source, .. } = error else {
        return false;
    };
    match source.to_string().split_once("404 Not Found: ") {
        // Answers to HEAD have no body.
        Some((_, body)) => {
            body.is_empty() || body.contains("NoSuchKey") || body.contains("NoSuchUpload")
        }
        None => true,
    }
}

/// Whether the storage is full. Source: S3 has no such code; these are those of Ceph, MinIO and the HTTP status.
fn is_full(error: &Error) -> bool {
    has(
        error,
        &["QuotaExceeded", "XMinioStorageFull", "507 Insufficient"],
    )
}

fn has(error: &Error, codes: &[&str]) -> bool {
    let text = error.to_string();
    codes.iter().any(|code| text.contains(code))
}
