//! Preparing an installation: from a ready cluster to the files its hosts boot into.
//!
//! The release image is read from the mirror's registry, the installer is taken out of it, run on the
//! install-config and the manifests, and its ignition files are completed for each host. What does not live here:
//! deciding whether a cluster may be installed (`rules`), rows and transitions (`app`). The one invariant: files of a
//! preparation are stored only when all of it succeeded.

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
pub use context::{Context, Failure, Input, Options, Outcome, RegistryAccess};
pub use mirrors::{CA_BUNDLES, Mirrors, REGISTRIES_CONF, Source};
pub use nodes::file_name;
pub use prepare::prepare;
pub use release::ReleaseInfo;
pub use signers::Signers;

/// Runs file work on the blocking pool.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Failure::new(format!("file work was interrupted: {error}"))))
}

#[cfg(test)]
mod tests;
