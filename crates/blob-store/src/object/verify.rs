//! Verification of the first read since the start: the digest is compared before the last chunk is sent, so that no
//! client receives all of a damaged blob.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};

use super::inner::BucketInner;
use oci::{Algorithm, Digest, Hasher};

struct DigestCheck {
    inner: Arc<BucketInner>,
    canonical: Digest,
    bytes: BoxStream<'static, io::Result<Bytes>>,
    hasher: Hasher,
    /// The latest chunk, held back since it may be the last one.
    held: Option<Bytes>,
}

/// A whole blob as a stream, whose last chunk is sent only if the digest matches.
pub(super) fn verified(
    inner: &Arc<BucketInner>,
    canonical: Digest,
    bytes: BoxStream<'static, io::Result<Bytes>>,
) -> BoxStream<'static, io::Result<Bytes>> {
    let check = DigestCheck {
        inner: Arc::clone(inner),
        canonical,
        bytes,
        hasher: Hasher::new(Algorithm::Sha256),
        held: None,
    };
    stream::try_unfold(check, DigestCheck::next).boxed()
}

impl DigestCheck {
    async fn next(mut self) -> io::Result<Option<(Bytes, Self)>> {
        while let Some(piece) = self.bytes.try_next().await? {
            // Chunks from the network are small: a blocking thread would cost more than the hash.
            self.hasher.update(&piece);
            if let Some(piece) = self.held.replace(piece) {
                return Ok(Some((piece, self)));
            }
        }
        let Some(last) = self.held.take() else {
            return Ok(None);
        };
        if self.hasher.clone().finish() != self.canonical {
            self.set_aside();
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.inner.verified.mark(&self.canonical);
        Ok(Some((last, self)))
    }

    /// Quarantines the content in a task, since the client may disconnect.
    fn set_aside(self) {
        tokio::spawn(async move {
            if let Err(error) = self.inner.quarantine(&self.canonical).await {
                let (digest, error) = (&self.canonical, model::error::chain(&error));
                tracing::error!(%digest, error, "damaged content is not quarantined");
            }
        });
    }
}
