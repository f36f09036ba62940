//! Why a store refuses.

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
    /// What was to go was pushed again meanwhile.
    #[error("it was pushed again meanwhile")]
    Renewed,
    /// The repository has no such manifest or tag.
    #[error("manifest {0} is not known")]
    UnknownManifest(String),
    /// No such upload is open in the repository.
    #[error("the upload is not known; begin a new one")]
    UnknownUpload,
    /// The content has another digest than was claimed; it was dropped.
    #[error("the content has the digest {actual}, not {claimed}")]
    WrongDigest {
        /// What the client said.
        claimed: Digest,
        /// What the bytes say.
        actual: Digest,
    },
    /// The next bytes have to begin elsewhere.
    #[error("the next byte of the upload is {received}")]
    OutOfOrder {
        /// How many bytes are there. Units: bytes.
        received: u64,
    },
    /// A manifest needs content that is not in its repository.
    #[error("the manifest needs content that the repository does not have")]
    MissingContent(Vec<Digest>),
    /// What should have been appended ended too early; the rest can follow.
    #[error("the content was cut off")]
    Interrupted(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The medium failed.
    #[error("{doing} failed")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The folder, its medium or the settings let nobody change anything.
    #[error("nothing can be changed: {0}")]
    ReadOnly(String),
    /// Where the content is kept does not answer, or refuses for a reason that passes.
    #[error("{doing} failed")]
    Unavailable {
        /// What was being done.
        doing: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// What is stored makes no sense.
    #[error("{what} is damaged: {why}")]
    Damaged {
        /// Which item.
        what: String,
        /// What is wrong with it.
        why: String,
    },
}

impl From<tokio::task::JoinError> for StoreError {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::io("running a task of the store")(error.into())
    }
}

impl StoreError {
    /// Whether the medium has no room left.
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
