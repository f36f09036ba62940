//! Waiting for conditions.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Between two looks: short, because some faults have to hit a state that lasts less than a second.
const POLL: Duration = Duration::from_millis(25);

/// Looks until there is something, and gives it.
///
/// Errors: `look`'s own, at once; nothing was there within `limit`, with `what` was waited for.
pub async fn until<T>(
    what: &str,
    limit: Duration,
    mut look: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        if Instant::now() >= deadline {
            bail!("{what}: not within {} s", limit.as_secs());
        }
        tokio::time::sleep(POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_never_comes_is_named() {
        let error = until("the moon", Duration::ZERO, async || Ok(None::<()>))
            .await
            .unwrap_err();
        assert!(error.to_string().contains("the moon"), "{error}");
    }
}
