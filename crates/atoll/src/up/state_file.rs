//! The state file `atoll.json`: addresses and processes, for other programs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::file::write_atomic;
use crate::terminal;

/// Content of `atoll.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UpState {
    /// URL of the installer API.
    pub(crate) api_url: String,
    /// URL of the image service.
    pub(crate) image_service_url: String,
    /// URL of the web UI.
    pub(crate) ui_url: String,
    /// Host and port of the registry.
    pub(crate) registry: String,
    /// Registry user.
    pub(crate) registry_user: String,
    /// File with that user's password.
    pub(crate) registry_password_file: PathBuf,
    /// CA certificate of the registry, PEM.
    pub(crate) registry_ca: PathBuf,
    /// Folder of the stop files: `<service>.stop` keeps a service stopped.
    pub(crate) control: PathBuf,
    /// Port of the database on loopback.
    pub(crate) postgres_port: u16,
    /// Catalogs, as in CATALOGS; empty without a catalog server.
    #[serde(default)]
    pub(crate) catalogs: String,
    /// Host and port of the catalog server; empty without one.
    #[serde(default)]
    pub(crate) catalog_server: String,
    /// Process ids of running children and the supervisor.
    pub(crate) pids: BTreeMap<String, u32>,
}

/// Keeps `atoll.json` up to date.
#[derive(Debug, Clone)]
pub(crate) struct StateFile(Arc<Mutex<StateFileInner>>);

#[derive(Debug)]
struct StateFileInner {
    path: PathBuf,
    state: UpState,
    is_published: bool,
}

impl StateFile {
    /// The state file `path`, written from [`StateFile::publish`] on.
    pub(crate) fn new(path: PathBuf, mut state: UpState) -> Self {
        state.pids.insert("atoll".to_owned(), std::process::id());
        Self(Arc::new(Mutex::new(StateFileInner {
            path,
            state,
            is_published: false,
        })))
    }

    /// Records a started child.
    pub(crate) fn started(&self, name: &str, pid: Option<u32>) {
        if let Some(pid) = pid {
            self.change(|inner| _ = inner.state.pids.insert(name.to_owned(), pid));
        }
    }

    /// Records an exited child.
    pub(crate) fn ended(&self, name: &str) {
        self.change(|inner| _ = inner.state.pids.remove(name));
    }

    /// Writes the file, once everything is ready, and on every change after.
    pub(crate) fn publish(&self) {
        self.change(|inner| inner.is_published = true);
    }

    /// Removes the file.
    pub(crate) fn withdraw(&self) {
        self.change(|inner| {
            inner.is_published = false;
            std::fs::remove_file(&inner.path).ok();
        });
    }

    fn change(&self, apply: impl FnOnce(&mut StateFileInner)) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        apply(&mut inner);
        if !inner.is_published {
            return;
        }
        let text = serde_json::to_vec_pretty(&inner.state).unwrap_or_default();
        if let Err(error) = write_atomic(&inner.path, &text, 0o600) {
            terminal::notice(&error.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_file_lists_running_children() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("atoll.json");
        let state_file = StateFile::new(path.clone(), UpState::default());
        state_file.started("registry", Some(7));
        assert!(!path.exists());
        state_file.publish();
        let read =
            || -> UpState { serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap() };
        assert_eq!(read().pids["registry"], 7);
        state_file.ended("registry");
        assert!(!read().pids.contains_key("registry"));
        state_file.withdraw();
        assert!(!path.exists());
    }
}
