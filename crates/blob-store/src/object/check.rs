//! Content that is read for the first time since the start, compared with its digest before its end is handed out:
//! nobody ever gets all of what is damaged.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};

use super::Inner;
use oci::{Algorithm, Digest, Hasher};

struct Check {
    inner: Arc<Inner>,
    canonical: Digest,
    bytes: BoxStream<'static, io::Result<Bytes>>,
    hasher: Hasher,
    /// The latest piece: it may be the last one.
    held: Option<Bytes>,
}

/// The whole of some content, as it comes; the last piece only if all is right.
pub(super) fn checked(
    inner: &Arc<Inner>,
    canonical: Digest,
    bytes: BoxStream<'static, io::Result<Bytes>>,
) -> BoxStream<'static, io::Result<Bytes>> {
    let check = Check {
        inner: Arc::clone(inner),
        canonical,
        bytes,
        hasher: Hasher::new(Algorithm::Sha256),
        held: None,
    };
    stream::try_unfold(check, Check::next).boxed()
}

impl Check {
    async fn next(mut self) -> io::Result<Option<(Bytes, Self)>> {
        while let Some(piece) = self.bytes.try_next().await? {
            // Pieces of the network are small: a thread of its own would cost more.
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

    /// Takes it away, whether anybody waits for that or not.
    fn set_aside(self) {
        tokio::spawn(async move {
            if let Err(error) = self.inner.quarantine(&self.canonical).await {
                let (digest, error) = (&self.canonical, model::error::chain(&error));
                tracing::error!(%digest, error, "damaged content stays");
            }
        });
    }
}
