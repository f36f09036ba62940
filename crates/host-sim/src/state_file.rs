//! State of a machine that survives a kill of the simulation: one small file per machine.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Error;
use crate::install_request::InstallRequest;
use crate::world::NodePhase;

/// Identity of the step runner, from the registration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Runner {
    pub(crate) infra_env_id: Uuid,
    pub(crate) host_id: Uuid,
    pub(crate) agent_version: String,
}

/// The persisted state of one machine.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct MachineState {
    /// Set by an upgrade of the agent; else the image's version counts.
    pub(crate) agent_version: Option<String>,
    pub(crate) runner: Option<Runner>,
    pub(crate) install: Option<InstallRequest>,
    pub(crate) stage: Option<String>,
    pub(crate) node: NodePhase,
}

/// A persisted value; without a directory it is in memory only.
#[derive(Debug)]
pub(crate) struct StateFile<T> {
    path: Option<PathBuf>,
    value: Mutex<T>,
}

impl<T: Clone + Default + Serialize + DeserializeOwned> StateFile<T> {
    /// Reads the value of `name`.
    ///
    /// Errors: `File`, `Invalid` – the file cannot be read or is damaged.
    pub(crate) fn open(directory: Option<&Path>, name: &str) -> Result<Self, Error> {
        let path = directory.map(|directory| directory.join(format!("{name}.json")));
        let value = match path.as_deref().map(std::fs::read) {
            Some(Ok(bytes)) => serde_json::from_slice(&bytes).map_err(|e| {
                Error::invalid(name, format!("its state file is damaged, remove it: {e}"))
            })?,
            Some(Err(e)) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::File {
                    path: path.unwrap_or_default(),
                    doing: "cannot be read",
                    source: e,
                });
            }
            _ => T::default(),
        };
        Ok(Self {
            path,
            value: Mutex::new(value),
        })
    }

    /// A copy of the value.
    pub(crate) fn get(&self) -> T {
        self.value
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Changes the value and writes it by atomic replace: a kill leaves the old or the new file.
    pub(crate) fn change(&self, change: impl FnOnce(&mut T)) {
        let mut value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut value);
        if let Some(path) = &self.path
            && let Err(error) = write(path, &*value)
        {
            tracing::error!(path = %path.display(), %error, "state of a machine not written");
        }
    }
}

fn write(path: &Path, value: &impl Serialize) -> std::io::Result<()> {
    let temporary = path.with_extension("json.new");
    let mut file = std::fs::File::create(&temporary)?;
    file.write_all(&serde_json::to_vec_pretty(value)?)?;
    // Synced before the rename: a crash in between leaves the old file, never an empty new one.
    file.sync_all()?;
    std::fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_survive_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let disk = StateFile::<MachineState>::open(Some(directory.path()), "master-0").unwrap();
        disk.change(|record| record.stage = Some("Installing".into()));
        let again = StateFile::<MachineState>::open(Some(directory.path()), "master-0").unwrap();
        assert_eq!(again.get().stage.as_deref(), Some("Installing"));
    }

    #[test]
    fn a_damaged_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a.json"), "{").unwrap();
        assert!(StateFile::<MachineState>::open(Some(directory.path()), "a").is_err());
    }
}
