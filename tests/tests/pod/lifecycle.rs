//! Starts without neighbours, and graceful stops.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use reqwest::{Method, StatusCode};
use system_tests::pod::{Container, Engine, Pod, SERVICES};
use system_tests::{ImageDownload, until};

use crate::{Trials, say};

/// Deadline of events that need no action: longer than the timeout of a request, and another one.
const LIMIT: Duration = Duration::from_mins(3);
/// Dependencies that each service waits for; the others need none.
const WAITING: [(&str, &[&str]); 3] = [
    ("api-server", &["database"]),
    ("webui", &["api"]),
    ("proxy", &["webui", "api-server", "image-service"]),
];

pub(crate) fn add(trials: &mut Trials) {
    trials.add("lifecycle::every_service_starts_alone", alone);
    trials.add("lifecycle::every_service_stops_gracefully", ends);
    trials.add("lifecycle::a_crashed_service_is_restarted", crashes);
}

async fn alone(engine: Engine) -> Result<()> {
    let one_by_one = async |pod: &mut Pod| {
        for service in SERVICES {
            lives_alone(service, pod.start(service).await?).await?;
            pod.remove(service).await?;
        }
        Ok(())
    };
    Pod::new(&engine).await?.used(one_by_one).await
}

async fn lives_alone(service: &str, container: &Container) -> Result<()> {
    until(&format!("{service} reports healthy"), LIMIT, async || {
        Ok(container.is_healthy().await?.then_some(()))
    })
    .await?;
    if service == "db" {
        return Ok(());
    }
    container.answers("/health", StatusCode::OK, "").await?;
    let Some((_, waited_for)) = WAITING.iter().find(|(name, _)| *name == service) else {
        return container.is_ready().await.map(drop);
    };
    for neighbour in *waited_for {
        container
            .answers("/ready", StatusCode::SERVICE_UNAVAILABLE, neighbour)
            .await?;
    }
    let ready = container.probe("/ready").await?;
    say(&format!("{service} alone: {}", ready.text()));
    Ok(())
}

async fn ends(engine: Engine) -> Result<()> {
    let pod = Pod::up(&engine).await?;
    pod.used(async |pod| end_all(pod).await).await
}

async fn end_all(pod: &Pod) -> Result<()> {
    let published = pod.make_image().await?;
    let direct = published.replace(
        &format!("http://127.0.0.1:{}", pod.ports().images),
        &pod.container("image-service")?.origin(),
    );
    ensure!(
        direct != published,
        "{published} does not go through the proxy"
    );
    drains(pod.container("proxy")?, &published).await?;
    drains(pod.container("image-service")?, &direct).await?;
    for service in ["webui", "api-server", "registry", "db"] {
        let ended = pod.container(service)?.stop().await?;
        ensure!(ended.code == 0, "{service} ended with {}", ended.code);
        say(&format!(
            "{service} ended after {:.2} s",
            ended.took.as_secs_f64()
        ));
    }
    Ok(())
}

/// Stops a container during a download, which has to be completed.
async fn drains(container: &Container, url: &str) -> Result<()> {
    let expected = ImageDownload::begin(url).await?.whole().await?;
    let mut under_way = ImageDownload::begin(url).await?;
    under_way.read(1 << 20).await?;
    let (ended, whole) = tokio::try_join!(container.stop(), async {
        is_refused(url).await?;
        under_way.read(expected.length / 2).await?;
        let name = container.name();
        ensure!(
            container.is_running().await?,
            "{name} did not wait for its download"
        );
        under_way.whole().await
    })?;
    let name = container.name();
    ensure!(whole == expected, "{name}: other bytes");
    ensure!(ended.code == 0, "{name} ended with {}", ended.code);
    say(&format!(
        "{name} exited {:.2} s after SIGTERM, with a download of {} MiB in flight",
        ended.took.as_secs_f64(),
        whole.length >> 20
    ));
    Ok(())
}

/// Waits until a draining service refuses connections.
async fn is_refused(url: &str) -> Result<()> {
    let client = reqwest::Client::builder().tls_certs_only([]).build()?;
    until("new requests are refused", LIMIT, async || {
        Ok(client.get(url).send().await.err().map(drop))
    })
    .await
    .context(url.to_owned())
}

async fn crashes(engine: Engine) -> Result<()> {
    let pod = Pod::up(&engine).await?;
    pod.used(async |pod| survives_crashes(pod).await).await
}

async fn survives_crashes(pod: &Pod) -> Result<()> {
    let api = pod.api()?;
    for service in SERVICES {
        pod.container(service)?.crash().await?;
        pod.is_ready().await.context(service)?;
        // Through the proxy, which has to find all services at new addresses.
        until("the API answers", LIMIT, async || {
            let answer = api.ask(Method::GET, "/v2/clusters", None).await.ok();
            Ok(answer.filter(|answer| answer.status == StatusCode::OK))
        })
        .await
        .context(service)?;
    }
    Ok(())
}
