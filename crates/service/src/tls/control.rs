//! Access of a server to the certificates of its listener, while they are served.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use tokio::sync::Mutex;

use super::Certificates;
use super::reload::Reload;

/// The certificates of a listener, once it listens; shared by its clones.
#[derive(Clone, Default)]
pub struct CertificateControl(Arc<OnceLock<Arc<Mutex<Reload>>>>);

impl CertificateControl {
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

impl std::fmt::Debug for CertificateControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CertificateControl").finish_non_exhaustive()
    }
}
