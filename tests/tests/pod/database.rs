//! The database is away, does not answer, or takes another password.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use reqwest::{Method, StatusCode, header};
use system_tests::pod::{Engine, Pod};
use system_tests::{Api, Snapshot, Stage, until};

use crate::{Trials, say};

/// How long the database is away.
const AWAY: Duration = Duration::from_secs(10);
/// Between two questions while it is away.
const PAUSE: Duration = Duration::from_millis(200);
/// Silence for which hosts are disconnected otherwise: less than the time without a database.
const SILENCE: &str = "9s";
/// Slower than elsewhere: both faults have to fit in.
const SPEEDUP: f64 = 30.0;
const LIMIT: Duration = Duration::from_mins(2);
const WRONG: &str = "not-the-password-5d1f";

pub(crate) fn add(trials: &mut Trials) {
    trials.add(
        "database::a_wrong_password_is_told_and_can_be_mended",
        wrong_password,
    );
    trials.add("database::stopped_and_frozen_for_ten_seconds", away);
}

async fn wrong_password(engine: Engine) -> Result<()> {
    let mut pod = Pod::new(&engine).await?;
    let done = has_wrong_password(&mut pod).await;
    pod.or_tell(done).await?;
    pod.down().await
}

async fn has_wrong_password(pod: &mut Pod) -> Result<()> {
    pod.start("db").await?;
    listens(pod.ports().database).await?;
    // The database has read its secret, the API server has not.
    let path = pod.folder().database_password();
    let right = fs::read_to_string(&path)?;
    fs::write(&path, WRONG)?;
    pod.start_missing(&[]).await?;
    let server = pod.container("api-server")?;
    server
        .answers("/ready", StatusCode::SERVICE_UNAVAILABLE, "password")
        .await?;
    let ready = server.probe("/ready").await?.text();
    ensure!(ready.contains("database"), "/ready: {ready}");
    let health = server.probe("/health").await?;
    ensure!(
        health.status == StatusCode::OK,
        "/health: {}",
        health.status
    );
    say(&format!("with a wrong password: {ready}"));
    fs::write(&path, &right)?;
    // Alone: its neighbours wait for it.
    server.restart().await?;
    pod.is_ready().await?;
    let logs = pod.logs().await?;
    for password in [WRONG, right.trim_end()] {
        ensure!(!logs.contains(password), "a password is in a log");
    }
    Ok(())
}

async fn listens(port: u16) -> Result<()> {
    until("the database listens", LIMIT, async || {
        let stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await;
        Ok(stream.ok().map(drop))
    })
    .await
}

async fn away(engine: Engine) -> Result<()> {
    let mut pod = Pod::new(&engine).await?;
    pod.folder()
        .set([("HOST_MAX_DISCONNECTION_TIME", SILENCE.to_owned())])?;
    let up = pod.start_all(&[]).await;
    pod.or_tell(up).await?;
    pod.installed_at(SPEEDUP, async |pod| {
        let api = pod.api()?;
        Stage::Installing.reached(&api).await?;
        let snapshot = Snapshot::take(&api).await?;
        let database = pod.container("db")?;
        database.stop().await?;
        is_told_to_wait(&api).await.context("stopped")?;
        database.start().await?;
        goes_on(pod, "stopped").await?;
        snapshot.holds(&api).await?;
        database.pause().await?;
        is_told_to_wait(&api).await.context("frozen")?;
        database.unpause().await?;
        goes_on(pod, "frozen").await?;
        snapshot.holds(&api).await
    })
    .await?;
    let lost = events(&pod).await?;
    ensure!(lost.is_empty(), "hosts were given up: {lost:?}");
    pod.down().await
}

/// Everybody who asks while the database is away is told to come again, and nothing else.
async fn is_told_to_wait(api: &Api) -> Result<()> {
    let began = Instant::now();
    while began.elapsed() < AWAY {
        let answer = api.ask(Method::GET, "/v2/clusters", None).await?;
        let after = answer.headers.get(header::RETRY_AFTER);
        ensure!(
            answer.status == StatusCode::SERVICE_UNAVAILABLE && after.is_some(),
            "{} with Retry-After {after:?}: {}",
            answer.status,
            answer.text()
        );
        let health = api.probe("/health").await?;
        ensure!(
            health.status == StatusCode::OK,
            "/health: {}",
            health.status
        );
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

async fn goes_on(pod: &Pod, after: &str) -> Result<()> {
    let ready = pod.is_ready().await?;
    let seconds = ready.as_secs_f64();
    say(&format!(
        "{after}: all ready {seconds:.1} s after the database"
    ));
    Ok(())
}

/// What was said of hosts that are not heard of.
async fn events(pod: &Pod) -> Result<Vec<String>> {
    let api = pod.api()?;
    let clusters = api.get("/v2/clusters").await?;
    let id = clusters[0]["id"].as_str().context("there is no cluster")?;
    let events = api
        .get(&format!("/v2/events?cluster_id={id}&limit=-1"))
        .await?;
    let messages = events.as_array().context("no list")?;
    let messages = messages
        .iter()
        .filter_map(|event| event["message"].as_str());
    Ok(messages
        .filter(|message| message.contains("disconnected"))
        .map(str::to_owned)
        .collect())
}
