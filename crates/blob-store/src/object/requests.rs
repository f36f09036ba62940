//! Requests to the bucket: several at once, and their failures as errors of the store.

use bucket::BucketError;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use crate::{Result, StoreError};

const DOING: &str = "sending a request to the bucket";

/// Concurrent requests of one operation.
const AT_ONCE: usize = 16;

/// Runs `work` for all `items` with bounded concurrency; results keep the order of the items.
pub(super) async fn each<I, T, F, W>(items: I, work: W) -> Result<Vec<T>>
where
    I: IntoIterator,
    W: Fn(I::Item) -> F,
    F: Future<Output = Result<T>>,
{
    let work: Vec<F> = items.into_iter().map(work).collect();
    stream::iter(work).buffered(AT_ONCE).try_collect().await
}

pub(super) fn unavailable(
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> StoreError {
    StoreError::Unavailable {
        doing: DOING,
        source: source.into(),
    }
}

impl From<BucketError> for StoreError {
    fn from(error: BucketError) -> Self {
        match error {
            BucketError::Full(source) => {
                Self::io(DOING)(std::io::Error::new(std::io::ErrorKind::StorageFull, source))
            }
            BucketError::TooLarge { key, size, limit } => Self::Damaged {
                what: key,
                why: format!("{size} bytes exceed the limit of {limit}"),
            },
            BucketError::Unavailable(source) | BucketError::Denied(source) => unavailable(source),
            BucketError::Missing => unavailable(error),
        }
    }
}
