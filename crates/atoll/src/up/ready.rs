//! Waiting until everything answers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use service::Error;

const POLL: Duration = Duration::from_millis(50);
/// How long one question may take: a service that starts may be busy.
const ASK_TIMEOUT: Duration = Duration::from_secs(5);
/// How long everything may take, on a slow disk with many migrations.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Waits until each of `urls`, by service, answers with success.
///
/// Errors: what the services that were not ready in time said last.
pub(crate) async fn wait(urls: BTreeMap<&'static str, String>) -> Result<(), Error> {
    // Nothing secret is asked, and the registry's certificate is made for clients.
    let client = service::http_client(None, true)?;
    let deadline = Instant::now() + TIMEOUT;
    let mut waiting = urls;
    loop {
        let mut said = BTreeMap::new();
        for (name, url) in &waiting {
            if let Err(why) = ask(&client, url).await {
                said.insert(*name, why);
            }
        }
        waiting.retain(|name, _| said.contains_key(name));
        if waiting.is_empty() {
            return Ok(());
        }
        if Instant::now() >= deadline {
            let said: Vec<_> = said
                .iter()
                .map(|(name, why)| format!("{name}: {why}"))
                .collect();
            let doing = format!("waiting {} s until everything is ready", TIMEOUT.as_secs());
            return Err(Error::new(doing, said.join("; ")));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Asks once; what was said when not ready.
pub(crate) async fn ask(client: &reqwest::Client, url: &str) -> Result<(), String> {
    let response = client
        .get(url)
        .timeout(ASK_TIMEOUT)
        .send()
        .await
        .map_err(|_| "does not answer".to_owned())?;
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let body = response.text().await.unwrap_or_default();
    Err(format!("answers {} {}", status.as_u16(), body.trim()))
}
