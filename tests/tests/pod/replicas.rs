//! Several replicas of a service behind the proxy.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use system_tests::pod::{Engine, Pod};
use system_tests::{ApiSnapshot, Stage, until};

use crate::{Trials, say};

const REPLICAS: u32 = 3;
/// Counted requests.
const REQUESTS: u64 = 90;
/// The proxy resolves replicas every few seconds.
const FOUND_LIMIT: Duration = Duration::from_mins(1);

pub(crate) fn add(trials: &mut Trials) {
    trials.add("replicas::one_api_server_of_three_is_killed", one_is_killed);
    trials.add("replicas::images_and_pages_are_answered_evenly", evenly);
}

async fn one_is_killed(engine: Engine) -> Result<()> {
    let mut pod = Pod::scaled(&engine, &[("api-server", REPLICAS)]).await?;
    let url = format!(
        "http://127.0.0.1:{}/api/assisted-install/v2/clusters",
        pod.ports().api
    );
    let even = are_even(&pod, "api-server", &url).await;
    pod.with_logs(even).await?;
    let before = counts(&pod, "api-server").await?;
    pod.installed_in_spite_of(async |pod| {
        let api = pod.api()?;
        Stage::Installing.reached(&api).await?;
        let snapshot = ApiSnapshot::take(&api).await?;
        let shares = differences(&before, &counts(pod, "api-server").await?);
        say(&format!("requests of the journey until then: {shares:?}"));
        is_even(&shares).context("the journey's own requests")?;
        pod.replica("api-server", 2)?.kill().await?;
        snapshot.holds(&api).await
    })
    .await?;
    let running = pod.replica("api-server", 2)?.is_running().await?;
    ensure!(!running, "the killed one runs again by itself");
    pod.down().await
}

async fn evenly(engine: Engine) -> Result<()> {
    let replicas = [("image-service", REPLICAS), ("webui", REPLICAS)];
    let pod = Pod::scaled(&engine, &replicas).await?;
    pod.used(async |pod| all_are_even(pod).await).await
}

async fn all_are_even(pod: &Pod) -> Result<()> {
    let image = pod.make_image().await?;
    let page = format!("http://127.0.0.1:{}/", pod.ports().webui);
    let proxied = format!(
        "http://127.0.0.1:{}/api/assisted-install/v2/clusters",
        pod.ports().webui_static
    );
    for (service, url) in [
        ("image-service", &image),
        ("webui", &page),
        ("webui", &proxied),
    ] {
        are_even(pod, service, url).await?;
    }
    Ok(())
}

/// Requests `url` often, and compares the share of each replica.
async fn are_even(pod: &Pod, service: &str, url: &str) -> Result<()> {
    // A connection for each request, as many clients have them.
    let client = reqwest::Client::builder()
        .tls_certs_only([])
        .pool_max_idle_per_host(0)
        .build()?;
    let ask = async || -> Result<()> {
        // The head is enough of an image.
        let response = client.get(url).header("range", "bytes=0-0").send().await?;
        let status = response.status();
        ensure!(status.is_success(), "GET {url}: {status}");
        Ok(())
    };
    let began = counts(pod, service).await?;
    let condition = format!("every {service} has got something to answer");
    until(&condition, FOUND_LIMIT, async || {
        ask().await?;
        let shares = differences(&began, &counts(pod, service).await?);
        Ok(shares.iter().all(|share| *share > 0).then_some(()))
    })
    .await?;
    let before = counts(pod, service).await?;
    for _ in 0..REQUESTS {
        ask().await?;
    }
    let shares = differences(&before, &counts(pod, service).await?);
    say(&format!("{service}: {shares:?} of {REQUESTS} for {url}"));
    is_even(&shares)
}

async fn counts(pod: &Pod, service: &str) -> Result<Vec<u64>> {
    let mut counts = Vec::new();
    for container in pod.replicas(service) {
        counts.push(container.requests().await?);
    }
    Ok(counts)
}

fn differences(before: &[u64], after: &[u64]) -> Vec<u64> {
    before
        .iter()
        .zip(after)
        .map(|(before, after)| after.saturating_sub(*before))
        .collect()
}

/// Each replica has at least half of a fair share.
fn is_even(shares: &[u64]) -> Result<()> {
    let fair = shares.iter().sum::<u64>() / u64::from(REPLICAS);
    let is_even = shares.len() == 3 && fair > 0 && shares.iter().all(|share| share * 2 >= fair);
    ensure!(is_even, "not even: {shares:?}");
    Ok(())
}
