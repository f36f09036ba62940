//! The state file `atoll.json`: addresses and processes, for other programs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use service::file::write_atomic;

use crate::event::{SupervisorEvent, SupervisorObserver};
use crate::up_state::UpState;

/// Keeps `atoll.json` up to date.
#[derive(Clone)]
pub(crate) struct StateFile(Arc<Mutex<StateFileInner>>);

struct StateFileInner {
    path: PathBuf,
    state: UpState,
    is_published: bool,
    observer: SupervisorObserver,
}

impl StateFile {
    /// The state file `path`, written from [`StateFile::publish`] on.
    pub(crate) fn new(path: PathBuf, mut state: UpState, observer: SupervisorObserver) -> Self {
        state.pids.insert("atoll".to_owned(), std::process::id());
        Self(Arc::new(Mutex::new(StateFileInner {
            path,
            state,
            is_published: false,
            observer,
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
            (inner.observer)(SupervisorEvent::StateNotWritten(&error));
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
        let state_file = StateFile::new(path.clone(), UpState::default(), Arc::new(|_| {}));
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
