//! Failures of preparations.

/// Failure of a preparation, for the user; nothing was stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct PreparationFailure {
    /// Failed step and cause; without credentials.
    pub reason: String,
    /// A registry did not answer: the same may succeed later.
    pub is_temporary: bool,
}

impl PreparationFailure {
    /// A failure for `reason`.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            is_temporary: false,
        }
    }
}

impl From<model::Error> for PreparationFailure {
    fn from(error: model::Error) -> Self {
        Self::new(error.chain())
    }
}

/// Runs file work on the blocking pool.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PreparationFailure> + Send + 'static,
) -> Result<T, PreparationFailure> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| {
            Err(PreparationFailure::new(format!(
                "file operation interrupted: {error}"
            )))
        })
}
