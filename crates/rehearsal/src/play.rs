//! Plays installations: creates the cluster of a script, boots its machines, installs, and judges the final state.

use std::sync::Arc;
use std::time::Duration;

use host_sim::Pace;
use rules::site::SiteFinding;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::Error;
use crate::api::{InstallerApi, accepted};
use crate::installation::PlayedInstallation;
use crate::progress::{RehearsalProgress, StateTracker};
use crate::records::CreatedRecords;
use crate::script::Script;

/// Time without any change after which a state counts as final. Units: simulated time.
const QUIET: Duration = Duration::from_mins(7);
/// The same in real time, at least: servers judge clusters every 10 seconds.
const QUIET_MIN: Duration = Duration::from_secs(30);

/// The way of playing.
#[derive(Debug, Clone)]
pub struct PlayOptions {
    /// Relation of simulated to real time.
    pub pace: Pace,
    /// Time without any change after which a state counts as final. It is counted in readings of the cluster, which a busy
    /// server delays as it delays the hosts.
    pub quiet: Duration,
    /// Whether the server makes files without an installer.
    pub has_dummy_files: bool,
    /// Whether the clusters are removed at the end.
    pub removes: bool,
    /// Number of installations, each with a name and hosts of its own.
    pub copies: usize,
    /// Installations at the same time.
    pub at_once: usize,
}

impl PlayOptions {
    /// One installation, which is removed at the end.
    pub fn at(pace: Pace) -> Self {
        Self {
            pace,
            quiet: Self::quiet(pace, QUIET_MIN),
            has_dummy_files: false,
            removes: true,
            copies: 1,
            at_once: 1,
        }
    }

    /// Time without any change that suits a pace, in real time at least `least`.
    pub fn quiet(pace: Pace, least: Duration) -> Duration {
        pace.real(QUIET).max(least)
    }
}

/// The end of one installation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstallationOutcome {
    /// Whether the cluster is installed, with the hosts that join it.
    pub is_installed: bool,
    /// Last status of the cluster.
    pub status: String,
    /// Mistakes that it met.
    pub findings: Vec<SiteFinding>,
}

/// Plays the copies of a script. Must run in a tokio runtime.
///
/// Errors: the first that any of them has.
pub async fn play(
    api: &InstallerApi,
    script: &Script,
    options: &PlayOptions,
    progress: &RehearsalProgress,
) -> Result<Vec<InstallationOutcome>, Error> {
    let version = release(api, script).await?;
    let permits = Arc::new(Semaphore::new(options.at_once));
    let mut running = JoinSet::new();
    for at in 0..options.copies {
        let (api, options, version) = (api.clone(), options.clone(), version.clone());
        let permit = Arc::clone(&permits).acquire_owned().await;
        let permit = permit.map_err(Error::internal)?;
        // Copied after the permit: only running installations have machines in memory.
        let script = script.copy(at);
        let tracker = StateTracker::new(progress, at, script.names());
        running.spawn(async move {
            let outcome = install(&api, &script, &options, &version, tracker).await;
            drop(permit);
            outcome
        });
    }
    let mut outcomes = Vec::new();
    while let Some(ended) = running.join_next().await {
        outcomes.push(ended.map_err(Error::internal)??);
    }
    progress.stop();
    Ok(outcomes)
}

/// The version of new clusters.
async fn release(api: &InstallerApi, script: &Script) -> Result<String, Error> {
    if let Some(version) = &script.release {
        return Ok(version.clone());
    }
    let versions = accepted(api.get("/v2/openshift-versions").await?)?;
    let versions = versions.as_object().cloned().unwrap_or_default();
    let default = versions
        .iter()
        .find(|(_, version)| version["default"] == true);
    let version = default.or_else(|| versions.iter().next_back());
    let version = version.map(|(name, _)| name.clone());
    version.ok_or_else(|| Error::server("the server offers no release"))
}

async fn install(
    api: &InstallerApi,
    script: &Script,
    options: &PlayOptions,
    version: &str,
    tracker: StateTracker,
) -> Result<InstallationOutcome, Error> {
    let mut made = CreatedRecords::default();
    let result = async {
        if let Err(finding) = made.create(api, script, version).await? {
            return Ok(InstallationOutcome {
                status: "not created".to_owned(),
                findings: vec![finding],
                ..InstallationOutcome::default()
            });
        }
        PlayedInstallation::start(api, script, options, &made, tracker)
            .await?
            .play()
            .await
    }
    .await;
    if options.removes {
        made.remove(api).await?;
    }
    result
}
