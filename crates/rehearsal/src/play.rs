//! Plays installations: creates the cluster of a script, boots its machines, installs, and judges the final state.

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::api::{InstallerApi, accepted};
use crate::installation::{InstallationOutcome, PlayedInstallation};
use crate::options::PlayOptions;
use crate::progress::{RehearsalProgress, StateTracker};
use crate::records::CreatedRecords;
use crate::script::Script;

/// Plays the copies of a script. Must run in a tokio runtime.
///
/// When the future is dropped, the simulated hosts end; with `removes`, tasks of the runtime remove the records from the
/// server, as they do after an error.
///
/// Errors: the first that any of them has; the others end.
pub async fn play(
    api: &InstallerApi,
    script: &Script,
    options: &PlayOptions,
    progress: &RehearsalProgress,
) -> Result<Vec<InstallationOutcome>, Error> {
    let version = release(api, script).await?;
    let ended = CancellationToken::new();
    let _ended_on_drop = ended.clone().drop_guard();
    let _stopped_on_drop = progress.stop_on_drop();
    // Without their handles, tasks run on.
    let mut running = FuturesUnordered::new();
    let (mut begun, mut outcomes, mut failure) = (0, Vec::new(), None);
    loop {
        while failure.is_none() && begun < options.copies && running.len() < options.at_once.max(1)
        {
            // Only running installations have machines in memory.
            let script = script.copy(begun);
            let task = InstallationTask {
                tracker: StateTracker::new(progress, begun, script.names()),
                api: api.clone(),
                script,
                options: options.clone(),
                version: version.clone(),
                ended: ended.clone(),
            };
            running.push(tokio::spawn(task.run()));
            begun += 1;
        }
        let Some(result) = running.next().await else {
            break;
        };
        match result.map_err(Error::internal).flatten() {
            Ok(outcome) => outcomes.extend(outcome),
            Err(error) => {
                failure.get_or_insert(error);
                ended.cancel();
            }
        }
    }
    failure.map_or(Ok(outcomes), Err)
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
    version.ok_or_else(|| Error::server("the server offers no release: mirror one to its registry"))
}

/// One installation, in a task that outlives the caller to remove its records.
struct InstallationTask {
    api: InstallerApi,
    script: Script,
    options: PlayOptions,
    version: String,
    tracker: StateTracker,
    /// The caller is not interested any more.
    ended: CancellationToken,
}

impl InstallationTask {
    /// The outcome; none if the installation was ended.
    async fn run(self) -> Result<Option<InstallationOutcome>, Error> {
        let mut made = CreatedRecords::default();
        // Not interrupted: only the response has the id of the record.
        let created = made.create(&self.api, &self.script, &self.version).await;
        let result = match created {
            Ok(Ok(())) => {
                let played =
                    Self::installed(&self.api, &self.script, &self.options, &made, self.tracker);
                // Its machines end here, before their records.
                let outcome = self.ended.run_until_cancelled(played).await;
                outcome.transpose()
            }
            Ok(Err(finding)) => Ok(Some(InstallationOutcome {
                status: "not created".to_owned(),
                findings: vec![finding],
                ..InstallationOutcome::default()
            })),
            Err(error) => Err(error),
        };
        if self.options.removes {
            made.remove(&self.api).await?;
        }
        result
    }

    async fn installed(
        api: &InstallerApi,
        script: &Script,
        options: &PlayOptions,
        made: &CreatedRecords,
        tracker: StateTracker,
    ) -> Result<InstallationOutcome, Error> {
        PlayedInstallation::start(api, script, options, made, tracker)
            .await?
            .play()
            .await
    }
}
