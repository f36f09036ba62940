//! Graceful shutdown: requests in flight are finished, slow ones are cut cleanly, the data survives.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use reqwest::Method;
use serde_json::json;
use system_tests::process::{self, Signal};
use system_tests::{ImageDownload, Installation, Ledger, image_url, until};

/// Requests in flight have 20 s; a busy machine some more.
const DRAIN_LIMIT: Duration = Duration::from_mins(1);

#[tokio::test]
async fn a_download_in_flight_is_finished() -> Result<()> {
    let installation = with_image().await?;
    let url = image_url(&installation.api()?).await?;
    let expected = ImageDownload::begin(&url).await?.whole().await?;
    let mut under_way = ImageDownload::begin(&url).await?;
    under_way.read(1 << 20).await?;
    let old = installation.pid("image-service")?;
    process::signal(old, Signal::TERM)?;
    is_refused(&url).await?;
    under_way.read(expected.length / 2).await?;
    ensure!(
        process::lives(old),
        "the service did not wait for its download"
    );
    ensure!(under_way.whole().await? == expected, "other bytes");
    installation.is_back("image-service", old).await?;
    installation.stop().await
}

#[tokio::test]
#[ignore = "waits until the service's patience ends; run by cargo xtask test --full"]
async fn a_stalled_download_is_cut_and_can_be_resumed() -> Result<()> {
    let installation = with_image().await?;
    let url = image_url(&installation.api()?).await?;
    let expected = ImageDownload::begin(&url).await?.whole().await?;
    let mut still = ImageDownload::begin(&url).await?;
    still.read(1 << 20).await?;
    let old = installation.pid("image-service")?;
    let began = Instant::now();
    process::signal(old, Signal::TERM)?;
    until("the service ends all the same", DRAIN_LIMIT, async || {
        Ok((!process::lives(old)).then_some(()))
    })
    .await?;
    report(&format!(
        "ended after {:.1} s",
        began.elapsed().as_secs_f64()
    ));
    ensure!(
        still.breaks_off().await?,
        "the end of the service looked like the end of the image"
    );
    installation.is_back("image-service", old).await?;
    ensure!(
        still.resume().await?.whole().await? == expected,
        "other bytes"
    );
    installation.stop().await
}

#[tokio::test]
async fn all_data_survives_a_stop_and_a_start() -> Result<()> {
    let mut installation = with_image().await?;
    let api = installation.api()?;
    let mut ledger = Ledger::new(&installation.state()?.services)?;
    // Stopped in the middle of changes, each service by itself and then all together.
    let stops = async {
        for name in ["api-server", "registry"] {
            let old = installation.pid(name)?;
            process::signal(old, Signal::TERM)?;
            installation.is_back(name, old).await?;
        }
        installation.down().await
    };
    tokio::select! {
        refused = ledger.write() => refused.context("changes")?,
        stopped = stops => stopped?,
    }
    installation.up().await?;
    report(&ledger.verify().await?);
    let infra_envs = api.get("/v2/infra-envs").await?;
    let first = infra_envs.as_array().context("no list")?;
    ensure!(
        first.iter().any(|one| one["name"] == "first"),
        "{infra_envs}"
    );
    installation.stop().await
}

/// An installation with content and an infra-env.
async fn with_image() -> Result<Installation> {
    let installation = Installation::with_content().await?;
    let registry = installation.state()?.services.registry();
    let api = installation.api()?;
    let body = json!({ "name": "first", "pull_secret": registry.pull_secret()?, "cpu_architecture": "x86_64" });
    api.succeed(Method::POST, "/v2/infra-envs", &body).await?;
    Ok(installation)
}

/// Waits until a draining service refuses connections.
async fn is_refused(url: &str) -> Result<()> {
    let client = reqwest::Client::builder().tls_certs_only([]).build()?;
    until("new requests are refused", DRAIN_LIMIT, async || {
        Ok(client.get(url).send().await.err().map(drop))
    })
    .await
}

#[expect(clippy::print_stdout, reason = "a measurement, shown with --nocapture")]
fn report(text: &str) {
    println!("{text}");
}
