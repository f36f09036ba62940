//! Packing of configurations into images, off the runtime's threads.

use std::sync::Arc;
use std::thread::available_parallelism;

use model::Error;
use tokio::sync::Semaphore;

use super::error::Answer;
use crate::content::Content;
use crate::image::CannotCustomise;

/// As many at a time as there are processors: each compresses, with a thread and buffers of its own, and hosts boot
/// together.
#[derive(Debug, Clone)]
pub(crate) struct Packing(Arc<Semaphore>);

impl Packing {
    pub(crate) fn new() -> Self {
        let processors = available_parallelism().map_or(1, usize::from);
        Self(Arc::new(Semaphore::new(processors)))
    }

    /// Runs `compose` when its turn comes; the caller's admission bounds the queue.
    pub(super) async fn run(
        &self,
        compose: impl FnOnce() -> Result<Content, CannotCustomise> + Send + 'static,
    ) -> Result<Content, Answer> {
        let internal = |error| Error::internal("customising the image", error);
        let _permit = self
            .0
            .acquire()
            .await
            .map_err(|closed| Error::internal("customising the image", closed))?;
        match tokio::task::spawn_blocking(compose).await {
            Ok(content) => Ok(content?),
            Err(panic) => Err(internal(panic).into()),
        }
    }
}
