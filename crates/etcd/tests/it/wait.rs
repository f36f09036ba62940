//! Waiting for conditions.

use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(50);
/// Far beyond any duration here; only a hanging test reaches it.
const LIMIT: Duration = Duration::from_mins(3);

/// Polls `look` until it returns a value.
///
/// Panics: it does not within some minutes; the last reason.
pub(crate) async fn until<T, E: std::fmt::Display>(
    condition: &str,
    mut look: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    let deadline = Instant::now() + LIMIT;
    loop {
        let reason = match look().await {
            Ok(found) => return found,
            Err(reason) => reason,
        };
        assert!(Instant::now() < deadline, "{condition}: {reason}");
        tokio::time::sleep(POLL).await;
    }
}
