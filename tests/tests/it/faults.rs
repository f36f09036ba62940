//! Killed processes in the middle of an installation: it continues, and nothing acknowledged is lost.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use system_tests::process::{self, Signal};
use system_tests::{
    ApiSnapshot, ImageDownload, Installation, Ledger, Stage, image_url, installed_in_spite_of,
    until,
};

/// Restart of killed machines.
const RESTART_LIMIT: Duration = Duration::from_mins(1);
const STAGES: [Stage; 3] = [Stage::Preparing, Stage::Installing, Stage::Finalizing];

#[tokio::test]
async fn an_installation_survives_api_server_registry_and_database() -> Result<()> {
    journey(&[
        ("api-server", Stage::Preparing),
        ("registry", Stage::Installing),
        ("postgres", Stage::Installing),
        ("api-server", Stage::Finalizing),
    ])
    .await
}

#[tokio::test]
#[ignore = "a whole installation; run by cargo xtask test --full"]
async fn an_installation_survives_the_api_server() -> Result<()> {
    journey(&STAGES.map(|stage| ("api-server", stage))).await
}

#[tokio::test]
#[ignore = "a whole installation; run by cargo xtask test --full"]
async fn an_installation_survives_the_registry() -> Result<()> {
    journey(&STAGES.map(|stage| ("registry", stage))).await
}

#[tokio::test]
#[ignore = "a whole installation; run by cargo xtask test --full"]
async fn an_installation_survives_the_page() -> Result<()> {
    journey(&STAGES.map(|stage| ("webui", stage))).await
}

#[tokio::test]
#[ignore = "a whole installation; run by cargo xtask test --full"]
async fn an_installation_survives_the_database() -> Result<()> {
    journey(&STAGES.map(|stage| ("postgres", stage))).await
}

/// Kills each service at its stage while changes are made, and verifies the state.
async fn journey(kills: &[(&str, Stage)]) -> Result<()> {
    let mut installation = Installation::start().await?;
    let mut ledger = Ledger::new(&installation.state()?.services)?;
    installed_in_spite_of(&mut installation, async |installation| {
        tokio::select! {
            refused = ledger.write() => refused.context("changes"),
            done = kill_all(installation, kills) => done,
        }
    })
    .await?;
    report(&ledger.verify().await?);
    installation.stop().await
}

async fn kill_all(installation: &Installation, kills: &[(&str, Stage)]) -> Result<()> {
    let api = installation.api()?;
    for (name, stage) in kills {
        stage.reached(&api).await?;
        let snapshot = ApiSnapshot::take(&api).await?;
        let old = installation.kill(name)?;
        installation.is_back(name, old).await?;
        snapshot
            .holds(&api)
            .await
            .with_context(|| format!("{name} was killed while {stage:?}"))?;
    }
    Ok(())
}

#[tokio::test]
#[ignore = "a whole installation; run by cargo xtask test --full"]
async fn an_installation_survives_its_simulated_machines() -> Result<()> {
    let mut installation = Installation::start().await?;
    let data = installation.data().display().to_string();
    installed_in_spite_of(&mut installation, async |installation| {
        let api = installation.api()?;
        for stage in STAGES {
            stage.reached(&api).await?;
            let snapshot = ApiSnapshot::take(&api).await?;
            let old = process::find("host-sim", &data).context("the machines do not run")?;
            process::signal(old, Signal::KILL)?;
            until("the machines continue", RESTART_LIMIT, async || {
                Ok(process::find("host-sim", &data).filter(|pid| *pid != old))
            })
            .await?;
            snapshot.holds(&api).await?;
        }
        Ok(())
    })
    .await?;
    installation.stop().await
}

#[tokio::test]
#[ignore = "a whole installation; run by cargo xtask test --full"]
async fn a_download_resumes_after_the_image_service_was_killed() -> Result<()> {
    let mut installation = Installation::start().await?;
    installed_in_spite_of(&mut installation, async |installation| {
        let api = installation.api()?;
        for stage in [Stage::Installing, Stage::Finalizing] {
            stage.reached(&api).await?;
            let url = image_url(&api).await?;
            let whole = ImageDownload::begin(&url).await?.whole().await?;
            let mut first = ImageDownload::begin(&url).await?;
            first.read(whole.length / 5).await?;
            let old = installation.kill("image-service")?;
            ensure!(
                first.breaks_off().await?,
                "the image came although its server was killed"
            );
            installation.is_back("image-service", old).await?;
            let resumed = first.resume().await?.whole().await?;
            ensure!(resumed == whole, "{resumed:?} is not {whole:?}");
        }
        Ok(())
    })
    .await?;
    installation.stop().await
}

#[tokio::test]
#[ignore = "a whole installation; run by cargo xtask test --full"]
async fn an_installation_survives_the_supervisor() -> Result<()> {
    let mut installation = Installation::start().await?;
    let mut ledger = Ledger::new(&installation.state()?.services)?;
    installed_in_spite_of(&mut installation, async |installation| {
        let api = installation.api()?;
        let kills = async {
            for stage in [Stage::Preparing, Stage::Installing] {
                stage.reached(&api).await?;
                let snapshot = ApiSnapshot::take(&api).await?;
                installation.kill_supervisor().await?;
                installation.up().await?;
                snapshot.holds(&api).await?;
            }
            Ok(())
        };
        tokio::select! {
            refused = ledger.write() => refused.context("changes"),
            done = kills => done,
        }
    })
    .await?;
    report(&ledger.verify().await?);
    installation.stop().await
}

#[expect(clippy::print_stdout, reason = "shown with --nocapture")]
fn report(text: &str) {
    println!("{text}");
}
