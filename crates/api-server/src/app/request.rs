//! Properties of the current request: its id, for the events it causes, and whether it is a dry run.

use uuid::Uuid;

/// Properties of one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestProperties {
    /// Id of the request.
    pub(crate) id: Uuid,
    /// It decides and responds as ever, and writes nothing.
    pub(crate) is_dry_run: bool,
}

tokio::task_local! {
    static REQUEST: RequestProperties;
}

/// Runs `answer` within a request.
pub(crate) async fn scope<F: Future>(request: RequestProperties, answer: F) -> F::Output {
    REQUEST.scope(request, answer).await
}

/// The current request; none in background tasks.
pub(crate) fn id() -> Option<Uuid> {
    REQUEST.try_with(|request| request.id).ok()
}

/// Whether the current request is a dry run. Tasks that a request spawns are none.
pub(crate) fn is_dry_run() -> bool {
    REQUEST
        .try_with(|request| request.is_dry_run)
        .unwrap_or(false)
}

/// Ends a transaction: commits it, or rolls it back in a dry run. Returns whether it is committed: effects beside the
/// database follow only then.
pub(crate) async fn commit(tx: sqlx::Transaction<'_, sqlx::Postgres>) -> Result<bool, sqlx::Error> {
    if is_dry_run() {
        tx.rollback().await?;
        return Ok(false);
    }
    tx.commit().await?;
    Ok(true)
}
