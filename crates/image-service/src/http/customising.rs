//! Customising of images, off the runtime's threads.

use std::sync::Arc;
use std::thread::available_parallelism;

use model::Error;
use tokio::sync::Semaphore;

use super::error::ErrorResponse;
use crate::content::ImageContent;
use crate::image::CustomiseError;

/// A semaphore with one permit per processor: each run compresses, with a thread and buffers of its own, and many hosts
/// boot at once.
#[derive(Debug, Clone)]
pub(crate) struct CustomisingPool(Arc<Semaphore>);

impl CustomisingPool {
    pub(crate) fn new() -> Self {
        let processors = available_parallelism().map_or(1, usize::from);
        Self(Arc::new(Semaphore::new(processors)))
    }

    /// Runs `compose` under a permit; the caller's stream limit bounds the queue.
    pub(super) async fn run(
        &self,
        compose: impl FnOnce() -> Result<ImageContent, CustomiseError> + Send + 'static,
    ) -> Result<ImageContent, ErrorResponse> {
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
