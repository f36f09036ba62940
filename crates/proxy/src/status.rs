//! What the proxy's own `/ready` says.

use service::forward::{Forward, Status};
use service::health::Health;
use tokio::sync::watch::Receiver;
use tokio::task::JoinSet;

/// What `/ready` waits for.
pub(crate) const UPSTREAMS: &str = "upstreams";

/// Keeps `/ready` true to which upstreams have a ready replica.
pub(crate) async fn watch(upstreams: Vec<Forward>, health: Health) {
    let mut statuses: Vec<(String, Receiver<Status>)> = upstreams
        .iter()
        .map(|forward| (forward.upstream().name().to_owned(), forward.status()))
        .collect();
    loop {
        let reasons: Vec<String> = statuses
            .iter_mut()
            .filter_map(|(name, status)| {
                let reason = status.borrow_and_update().reason.clone()?;
                Some(format!("{name} {reason}"))
            })
            .collect();
        if reasons.is_empty() {
            health.ready(UPSTREAMS);
        } else {
            health.unready(UPSTREAMS, reasons.join(", "));
        }
        let mut changes: JoinSet<_> = statuses
            .iter()
            .map(|(_, status)| {
                let mut status = status.clone();
                async move { status.changed().await }
            })
            .collect();
        if !matches!(changes.join_next().await, Some(Ok(Ok(())))) {
            return;
        }
    }
}
