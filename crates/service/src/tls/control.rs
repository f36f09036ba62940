//! Access of a server to the certificates of its listener, while they are served.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::reload::{CertificateStates, Reload};
use super::served::ServedCertificates;
use super::tls_config::{Certificates, TlsConfig};
use crate::Error;
use crate::error::ResultExt as _;

/// Loads the files of `config` and reloads them when they change or SIGHUP comes, until `shutdown`; `control` can make
/// it follow others.
pub(crate) async fn reloading(
    config: TlsConfig,
    speaks_http2: bool,
    control: &CertificateControl,
    shutdown: CancellationToken,
) -> Result<ServedCertificates, Error> {
    let doing = format!("loading {}", config.certificates);
    let interval = config.reload_interval;
    let reload = Reload::start(config, speaks_http2).await?;
    let served = reload.served();
    let reload = Arc::new(Mutex::new(reload));
    control.set(reload.clone());
    let mut hangup = signal(SignalKind::hangup()).doing(doing)?;
    tokio::spawn(shutdown.run_until_cancelled_owned(async move {
        loop {
            tokio::select! {
                () = tokio::time::sleep(interval) => {}
                _ = hangup.recv() => {}
            }
            reload.lock().await.pass().await;
        }
    }));
    Ok(served)
}

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

    fn set(&self, reload: Arc<Mutex<Reload>>) {
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
