//! The database is unavailable, hangs, or has another password.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use reqwest::{Method, StatusCode, header};
use system_tests::pod::{Engine, Pod};
use system_tests::{ApiClient, ApiSnapshot, Stage, until};

use crate::{Trials, say};

/// Duration of the outage; ten seconds have to be survived at least.
const AWAY: Duration = Duration::from_secs(30);
/// Interval of requests during the outage.
const PAUSE: Duration = Duration::from_millis(200);
/// Heartbeat timeout: shorter than the outage, and longer than the pauses of a slow machine's agents after
/// it.
const SILENCE: &str = "25s";
/// Event texts of heartbeat timeouts.
const GIVEN_UP: [&str; 3] = [
    "lost contact",
    "sent no heartbeat",
    "stopped sending heartbeats",
];
/// Slower than elsewhere: both faults have to fit in.
const SPEEDUP: f64 = 20.0;
const LIMIT: Duration = Duration::from_mins(2);
const WRONG: &str = "not-the-password-5d1f";

pub(crate) fn add(trials: &mut Trials) {
    trials.add(
        "database::a_wrong_password_is_reported_and_can_be_corrected",
        wrong_password,
    );
    trials.add("database::stopped_and_frozen_in_the_middle", away);
}

async fn wrong_password(engine: Engine) -> Result<()> {
    Pod::new(&engine).await?.used(has_wrong_password).await
}

async fn has_wrong_password(pod: &mut Pod) -> Result<()> {
    let database = pod.start("db").await?;
    until("the database works", LIMIT, async || {
        Ok(database.is_healthy().await?.then_some(()))
    })
    .await?;
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

async fn away(engine: Engine) -> Result<()> {
    let mut pod = Pod::new(&engine).await?;
    pod.folder()
        .set([("HOST_MAX_DISCONNECTION_TIME", SILENCE.to_owned())])?;
    let up = pod.start_all(&[]).await;
    pod.with_logs(up).await?;
    let mut before = 0;
    pod.installed_at(SPEEDUP, async |pod| {
        let api = pod.api()?;
        Stage::Installing.reached(&api).await?;
        let snapshot = ApiSnapshot::take(&api).await?;
        before = messages(&api).await?.len();
        let database = pod.container("db")?;
        database.stop().await?;
        gets_retry_after(&api).await.context("stopped")?;
        database.start().await?;
        goes_on(pod, "stopped").await?;
        snapshot.holds(&api).await?;
        database.pause().await?;
        gets_retry_after(&api).await.context("frozen")?;
        database.unpause().await?;
        goes_on(pod, "frozen").await?;
        let cluster = Stage::Installing.reached(&api).await?;
        ensure!(
            Stage::of(&cluster)? < Stage::Installed,
            "the faults come when all is over"
        );
        snapshot.holds(&api).await
    })
    .await?;
    let mut since = messages(&pod.api()?).await?.split_off(before);
    since.retain(|message| GIVEN_UP.iter().any(|word| message.contains(word)));
    ensure!(since.is_empty(), "hosts were given up: {since:?}");
    pod.down().await
}

/// All requests during the outage get a retriable status, and nothing else.
async fn gets_retry_after(api: &ApiClient) -> Result<()> {
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

/// Messages of the cluster's events, the oldest first.
async fn messages(api: &ApiClient) -> Result<Vec<String>> {
    let clusters = api.get("/v2/clusters").await?;
    let id = clusters[0]["id"].as_str().context("there is no cluster")?;
    let events = api
        .get(&format!("/v2/events?cluster_id={id}&limit=-1"))
        .await?;
    let events = events.as_array().context("no list")?.iter();
    let messages = events.filter_map(|event| event["message"].as_str());
    Ok(messages.map(str::to_owned).collect())
}
