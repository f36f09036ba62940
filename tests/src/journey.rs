//! The main job, with injected faults.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use testkit::demo::{Console, ContentOffer, DemoContent, Journey, JourneyOptions};

use crate::process::program;
use crate::{ApiClient, Installation, until};

/// Speed of the machines relative to real time: slow enough that each fault hits in the middle.
pub(crate) const SPEEDUP: f64 = 60.0;
/// Deadline of a stage.
const STAGE_LIMIT: Duration = Duration::from_mins(5);

/// Stage of a cluster's installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Hosts are discovered, or the cluster is ready.
    Before,
    /// The installer runs.
    Preparing,
    /// Hosts are being written and started.
    Installing,
    /// The new cluster settles.
    Finalizing,
    /// Installed.
    Installed,
}

impl Stage {
    /// The stage of a cluster.
    ///
    /// Errors: its status does not lead to `installed`.
    pub fn of(cluster: &Value) -> Result<Self> {
        Ok(match cluster["status"].as_str().unwrap_or_default() {
            "pending-for-input" | "insufficient" | "ready" => Self::Before,
            "preparing-for-installation" => Self::Preparing,
            "installing" => Self::Installing,
            "finalizing" => Self::Finalizing,
            "installed" => Self::Installed,
            other => bail!("the cluster is {other:?}: {}", cluster["status_info"]),
        })
    }

    /// Waits until the cluster has reached the stage; returns the cluster with its hosts.
    ///
    /// Errors: not in time, or a status that does not lead there.
    pub async fn reached(self, api: &ApiClient) -> Result<Value> {
        until(
            &format!("the cluster is {self:?}"),
            STAGE_LIMIT,
            async || {
                let Some(id) = only_cluster(api).await? else {
                    return Ok(None);
                };
                let cluster = api.get(&format!("/v2/clusters/{id}")).await?;
                let stage = Self::of(&cluster)?;
                Ok((stage >= self).then_some(cluster))
            },
        )
        .await
    }
}

async fn only_cluster(api: &ApiClient) -> Result<Option<String>> {
    let clusters = api.get("/v2/clusters").await?;
    Ok(clusters[0]["id"].as_str().map(str::to_owned))
}

/// Installs a new cluster of three control plane hosts and two workers, while `faults` run.
///
/// Errors: those of either.
pub async fn installed_in_spite_of(
    installation: &mut Installation,
    faults: impl AsyncFnOnce(&mut Installation) -> Result<()>,
) -> Result<()> {
    let console = Console::new(false);
    let registry = installation.state()?.services.registry();
    let installer = program("openshift-baremetal-install")?;
    let (data, offer) = (installation.data(), ContentOffer::Settings);
    let content = DemoContent::make(&data, &registry, &installer, offer, &console).await?;
    let work = installation.data().join("demo");
    let options = options(installation.state_file(), work, SPEEDUP)?;
    let api = installation.api()?;
    let faults = async || faults(installation).await;
    both(&api, &content, &options, faults).await
}

/// Installs a new cluster of an installation with content, by the holder of `token`.
///
/// Errors: those of the journey.
pub async fn journey_with(installation: &Installation, token: &str) -> Result<()> {
    let data = installation.data();
    let content = DemoContent::read(&data)?.context("there is no content")?;
    let mut options = options(installation.state_file(), data.join("demo"), SPEEDUP)?;
    options.token = Some(token.to_owned());
    let console = Console::new(false);
    Journey::new(&options, &console)?.run(&content).await
}

/// Options of a journey with the services that the file `state` names.
pub(crate) fn options(state: PathBuf, work: PathBuf, speedup: f64) -> Result<JourneyOptions> {
    Ok(JourneyOptions {
        state,
        work,
        host_sim: program("host-sim")?,
        coreos_installer: None,
        broken: None,
        speedup,
        token: None,
    })
}

/// Runs the journey, and `faults` once the services have the content.
pub(crate) async fn both(
    api: &ApiClient,
    content: &DemoContent,
    options: &JourneyOptions,
    faults: impl AsyncFnOnce() -> Result<()>,
) -> Result<()> {
    let console = Console::new(false);
    let journey = Journey::new(options, &console)?;
    tokio::try_join!(
        async { journey.run(content).await.context("the journey") },
        async {
            // The services get the content before.
            Stage::Before.reached(api).await?;
            faults().await.context("the faults")
        },
    )?;
    Ok(())
}
