//! The request of an installation, and the dialogue while it runs.

use std::path::PathBuf;

use mirror::history::Pruning;
use service::Error;

/// The bundle, the folder and the options of an installation.
#[derive(Debug, Clone)]
pub struct InstallRequest {
    /// File of `atoll bundle`.
    pub bundle: PathBuf,
    /// Folder of the pod, which is made.
    pub dir: PathBuf,
    /// File with answers to all questions.
    pub answers: Option<PathBuf>,
    /// Host name or IP address of this host; before the one of the answers.
    pub host: Option<String>,
    /// Public key that has to have signed the bundle.
    pub key: Option<PathBuf>,
    /// Whether only the images of the services are loaded into podman.
    pub only_load: bool,
    /// Whether callers are authenticated from now on.
    pub login: bool,
}

/// Questions while a bundle is installed.
pub trait Dialogue {
    /// The name of this host for users and machines; `known` is an address or name of it.
    ///
    /// Errors: there is no answer.
    fn host(&self, known: Option<&str>) -> Result<String, Error>;

    /// Whether images that left the set may be deleted from the local registry.
    ///
    /// Errors: the answer cannot be read.
    fn allows_pruning(&self, pruning: &Pruning) -> Result<bool, Error>;
}
