//! Waiting for conditions.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Short, because some faults have to hit a state that lasts less than a second.
const POLL: Duration = Duration::from_millis(25);

/// Polls `look` until it returns a value.
///
/// Errors: `look`'s own, at once; a timeout after `limit`, with the description `condition`.
pub async fn until<T>(
    condition: &str,
    limit: Duration,
    mut look: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        if Instant::now() >= deadline {
            bail!("{condition}: not within {} s", limit.as_secs());
        }
        tokio::time::sleep(POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_timeout_names_the_condition() {
        let error = until("the moon", Duration::ZERO, async || Ok(None::<()>))
            .await
            .unwrap_err();
        assert!(error.to_string().contains("the moon"), "{error}");
    }
}
