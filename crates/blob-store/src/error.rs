//! Errors of content stores.

use std::io;

use oci::{Digest, Repository};

/// Why an operation on a store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing was ever pushed there.
    #[error("repository {0} is not known")]
    UnknownRepository(Repository),
    /// The repository has no such blob.
    #[error("blob {0} is not known")]
    UnknownBlob(Digest),
    /// A manifest of the repository needs the blob.
    #[error("blob {0} is needed by a manifest")]
    InUse(Digest),
    /// The removal is refused: the target was pushed again meanwhile.
    #[error("it was pushed again meanwhile")]
    Renewed,
    /// The repository has no such manifest or tag.
    #[error("manifest {0} is not known")]
    UnknownManifest(String),
    /// No such upload is open in the repository.
    #[error("the upload is not known; begin a new one")]
    UnknownUpload,
    /// The content has another digest than claimed; it was dropped.
    #[error("the content has the digest {actual}, not {claimed}")]
    WrongDigest {
        /// The digest in the request.
        claimed: Digest,
        /// The digest of the bytes.
        actual: Digest,
    },
    /// The chunk does not begin at the end of the upload.
    #[error("the next byte of the upload is {received}")]
    OutOfOrder {
        /// Bytes received so far. Units: bytes.
        received: u64,
    },
    /// A manifest needs content that is not in its repository.
    #[error("the manifest needs content that the repository does not have")]
    MissingContent(Vec<Digest>),
    /// The request body ended too early; the upload can be resumed.
    #[error("the content was cut off")]
    Interrupted(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The medium failed.
    #[error("{doing} failed")]
    Io {
        /// The failed operation.
        doing: &'static str,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The folder, its medium or the settings are read-only.
    #[error("the store is read-only: {0}")]
    ReadOnly(String),
    /// The storage backend does not answer, or refuses with a transient failure.
    #[error("{doing} failed")]
    Unavailable {
        /// The failed operation.
        doing: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The stored data is malformed.
    #[error("{what} is damaged: {why}")]
    Damaged {
        /// The damaged item.
        what: String,
        /// The defect.
        why: String,
    },
}

impl From<tokio::task::JoinError> for StoreError {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::io("running a task of the store")(error.into())
    }
}

impl StoreError {
    /// Whether the medium is full.
    pub fn is_full(&self) -> bool {
        let Self::Io { source, .. } = self else {
            return false;
        };
        matches!(
            source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        )
    }

    pub(crate) fn io(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }
}
