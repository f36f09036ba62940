//! Readiness of all services.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use service::Error;

const POLL: Duration = Duration::from_millis(50);
/// Timeout of one request: a starting service may be busy.
const ASK_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of the whole start, on a slow disk with many migrations.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Waits until each of `urls`, by service, responds with success.
///
/// Errors: timeout, with the last response of each service that is not ready.
pub async fn wait(urls: BTreeMap<&'static str, String>) -> Result<(), Error> {
    // Certificates are not verified: no secret is sent, and the registry's is issued for the names of its clients.
    let client = service::http_client(None, true)?;
    let deadline = Instant::now() + TIMEOUT;
    let mut waiting = urls;
    loop {
        let mut not_ready = BTreeMap::new();
        for (name, url) in &waiting {
            if let Err(why) = ask(&client, url).await {
                not_ready.insert(*name, why);
            }
        }
        waiting.retain(|name, _| not_ready.contains_key(name));
        if waiting.is_empty() {
            return Ok(());
        }
        if Instant::now() >= deadline {
            let reasons: Vec<_> = not_ready
                .iter()
                .map(|(name, why)| format!("{name}: {why}"))
                .collect();
            let doing = format!("waiting {} s for readiness", TIMEOUT.as_secs());
            return Err(Error::new(doing, reasons.join("; ")));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Sends one readiness request.
///
/// Errors: the response of a service that is not ready.
pub async fn ask(client: &reqwest::Client, url: &str) -> Result<(), String> {
    let response = client
        .get(url)
        .timeout(ASK_TIMEOUT)
        .send()
        .await
        .map_err(|_| "no response".to_owned())?;
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let body = response.text().await.unwrap_or_default();
    Err(format!("status {} {}", status.as_u16(), body.trim()))
}
