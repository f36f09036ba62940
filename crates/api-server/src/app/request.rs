//! The id of the current request, for the events it causes.

use uuid::Uuid;

tokio::task_local! {
    static REQUEST_ID: Uuid;
}

/// Runs `answer` within the request `id`.
pub(crate) async fn scope<F: Future>(id: Uuid, answer: F) -> F::Output {
    REQUEST_ID.scope(id, answer).await
}

/// The current request; none in background tasks.
pub(crate) fn id() -> Option<Uuid> {
    REQUEST_ID.try_with(|id| *id).ok()
}
