//! Context and outcome of steps, and the argument that most of them have.

use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::HostFiles;
use crate::api::ServiceClient;
use crate::status::StatusHandle;

/// Everything that steps use.
#[derive(Debug)]
pub(crate) struct StepContext {
    pub(crate) api: ServiceClient,
    pub(crate) files: HostFiles,
    pub(crate) host_id: Uuid,
    pub(crate) status: StatusHandle,
    pub(crate) installation: InstallationTask,
    /// The peer's image of the agent, which its installer uses.
    pub(crate) agent_image: Mutex<String>,
}

/// The installation that runs, if any.
#[derive(Debug, Default)]
pub(crate) struct InstallationTask(Mutex<Option<JoinHandle<()>>>);

impl InstallationTask {
    /// Starts an installation. False when one runs.
    pub(crate) fn start(&self, installation: impl Future<Output = ()> + Send + 'static) -> bool {
        let mut task = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if task.as_ref().is_some_and(|task| !task.is_finished()) {
            return false;
        }
        *task = Some(tokio::spawn(installation));
        true
    }

    /// Stops it; its programs are killed.
    pub(crate) fn stop(&self) {
        if let Some(task) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            task.abort();
        }
    }
}

/// Result of a step.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StepOutcome {
    pub(crate) exit_code: i64,
    /// JSON text of most steps.
    pub(crate) output: String,
    pub(crate) error: String,
    /// The host has to register again.
    pub(crate) registers_again: bool,
}

impl StepOutcome {
    pub(super) fn json(output: &impl Serialize) -> Result<Self, String> {
        let output = serde_json::to_string(output).map_err(|error| error.to_string())?;
        Ok(Self {
            output,
            ..Self::default()
        })
    }
}

/// The request in the only argument.
pub(super) fn only<T: DeserializeOwned>(arguments: &[String]) -> Result<T, String> {
    let [argument] = arguments else {
        return Err(format!("expected one argument, got {}", arguments.len()));
    };
    serde_json::from_str(argument).map_err(|error| format!("unexpected argument: {error}"))
}
