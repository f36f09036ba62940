//! Preparation of an installation: the installer of the release image makes the files that hosts boot into.
//!
//! Reads the release image from its registry or mirrors, extracts the installer, runs it on install-config and
//! manifests, and completes its ignition configs for each host. Not here: whether a cluster may be installed
//! (`rules`), rows and transitions (`app`). Invariant: files are stored only after the whole preparation succeeded.

mod bootstrap;
mod confinement;
mod context;
mod dummy;
mod elf;
mod extract;
mod install_config;
mod installer;
mod installer_cache;
pub mod kubeconfig;
mod launch;
mod libraries;
mod manifests;
mod mirrors;
mod nodes;
mod outputs;
mod patch;
mod prepare;
mod redaction;
mod registry;
mod registry_limit;
mod release;
mod signers;
mod work_folder;

pub(crate) use manifests::check_patch;
pub(crate) use signers::keyring;

pub use confinement::Confinement;
pub use context::{
    InstallContext, InstallOptions, PreparationFailure, PreparationInput, PreparationOutcome,
    RegistryAccess,
};
pub use mirrors::{CA_BUNDLES, REGISTRIES_CONF, RegistryMirrors};
pub use nodes::file_name;
pub use prepare::prepare;
pub use release::ReleaseInfo;
pub use signers::Signers;

/// Runs file work on the blocking pool.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PreparationFailure> + Send + 'static,
) -> Result<T, PreparationFailure> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| {
            Err(PreparationFailure::new(format!(
                "file operation interrupted: {error}"
            )))
        })
}

#[cfg(test)]
mod tests;
