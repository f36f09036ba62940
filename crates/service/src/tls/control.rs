//! Access of a server to the certificates of its listener, while they are served.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use tokio::sync::Mutex;

use model::time::Timestamp;
use serde::Serialize;

use super::Certificates;
use super::reload::Reload;

/// The certificates of a listener, once it listens; shared by its clones.
#[derive(Clone, Default)]
pub struct CertificateControl(Arc<OnceLock<Arc<Mutex<Reload>>>>);

impl CertificateControl {
    /// The certificates, with the reasons of those that are not in force.
    pub async fn states(&self) -> CertificateStates {
        match self.0.get() {
            Some(reload) => reload.lock().await.states(),
            None => CertificateStates::default(),
        }
    }

    pub(super) fn set(&self, reload: Arc<Mutex<Reload>>) {
        self.0.set(reload).ok();
    }

    /// Serves the certificates of `list` from the next handshake on, and follows its changes.
    ///
    /// Errors: the list cannot be read, or none of its certificates can be used; the old ones stay in force.
    pub async fn use_list(&self, list: PathBuf) -> Result<(), String> {
        match self.0.get() {
            Some(reload) => reload.lock().await.follow(Certificates::List(list)).await,
            None => Err("the listener has no certificates".to_owned()),
        }
    }
}

/// State of a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CertificateState {
    /// File with the chain.
    pub file: PathBuf,
    /// Server names that it is served for; empty when none of its versions is in force.
    pub names: Vec<String>,
    /// Absent when none of its versions is in force.
    pub expires: Option<Timestamp>,
    /// Whether a version of it is served.
    pub is_in_force: bool,
    /// Reason why the file, as it is now, is not served.
    pub problem: Option<String>,
}

/// State of the certificates of a listener.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CertificateStates {
    /// The list that names them, or their files.
    pub source: String,
    /// Reason why the list, as it is now, is not followed.
    pub problem: Option<String>,
    /// In the order of the list.
    pub certificates: Vec<CertificateState>,
}

impl std::fmt::Debug for CertificateControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CertificateControl").finish_non_exhaustive()
    }
}
