//! Each container is restarted and killed in the middle of an installation.

use anyhow::{Context as _, Result, ensure};
use system_tests::pod::{Container, Engine, Pod, SERVICES};
use system_tests::{ApiSnapshot, Ledger, Stage};

use crate::{Trials, say};

/// Slower than elsewhere: all faults have to fit in.
const SPEEDUP: f64 = 20.0;
const STAGES: [Stage; 3] = [Stage::Preparing, Stage::Installing, Stage::Finalizing];

pub(crate) fn add(trials: &mut Trials) {
    trials.add("restart::each_container_in_the_middle", each_container);
    for service in SERVICES {
        let name = format!("restart::{service}_at_each_stage");
        trials.add_long(&name, move |engine| at_each_stage(engine, service));
    }
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    Restart,
    Kill,
}

impl Fault {
    const ALL: [Self; 2] = [Self::Restart, Self::Kill];

    async fn befall(self, container: &Container) -> Result<()> {
        match self {
            Self::Restart => container.restart().await,
            Self::Kill => {
                container.kill().await?;
                container.start().await
            }
        }
    }
}

async fn each_container(engine: Engine) -> Result<()> {
    let each = |stage, fault| SERVICES.map(|service| (stage, service, fault));
    let faults = [
        each(Stage::Preparing, Fault::Restart),
        each(Stage::Installing, Fault::Kill),
    ];
    survives(engine, &faults.concat()).await
}

async fn at_each_stage(engine: Engine, service: &'static str) -> Result<()> {
    let faults = STAGES
        .iter()
        .flat_map(|stage| Fault::ALL.map(|fault| (*stage, service, fault)));
    survives(engine, &faults.collect::<Vec<_>>()).await
}

/// Injects each fault when its stage is reached and the one before is over, while changes are made.
async fn survives(engine: Engine, faults: &[(Stage, &str, Fault)]) -> Result<()> {
    let mut pod = Pod::up(&engine).await?;
    let mut ledger = Ledger::new(&pod.state()?)?;
    pod.installed_at(SPEEDUP, async |pod| {
        tokio::select! {
            refused = ledger.write() => refused.context("changes"),
            done = befall_all(pod, faults) => done,
        }
    })
    .await?;
    say(&ledger.verify().await?);
    pod.down().await
}

async fn befall_all(pod: &Pod, faults: &[(Stage, &str, Fault)]) -> Result<()> {
    let api = pod.api()?;
    for (stage, service, fault) in faults {
        let cluster = stage.reached(&api).await?;
        ensure!(
            Stage::of(&cluster)? < Stage::Installed,
            "{service}: {fault:?} comes when all is over"
        );
        let snapshot = ApiSnapshot::take(&api).await?;
        fault.befall(pod.container(service)?).await?;
        let ready = pod.is_ready().await?;
        snapshot
            .holds(&api)
            .await
            .with_context(|| format!("after {fault:?} of {service}"))?;
        say(&format!(
            "{service}: {fault:?} at {stage:?}, all ready {:.1} s later",
            ready.as_secs_f64()
        ));
    }
    Ok(())
}
