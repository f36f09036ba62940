//! Preparation of an installation: the installer of the release image makes the files that hosts boot into.
//!
//! Reads the release image from its registry or mirrors, extracts the installer, runs it on install-config and
//! manifests, and completes its ignition configs for each host. Not here: whether a cluster may be installed
//! (`rules`), rows and transitions (`api-server`). Invariant: files are stored only after the whole preparation succeeded.

mod bootstrap;
mod confinement;
mod context;
pub mod day2;
mod dummy;
mod elf;
mod extract;
mod failure;
mod install_config;
mod installer;
mod installer_cache;
pub mod kubeconfig;
mod launch;
mod libraries;
mod manifests;
mod mirrors;
mod nodes;
mod output_tail;
mod outputs;
mod patch;
mod prepare;
mod redaction;
mod registry;
mod registry_limit;
mod release;
mod release_image;
mod signers;
mod site_catalogs;
mod work_folder;

pub use confinement::Confinement;
pub use context::{InstallContext, InstallOptions, PreparationInput, PreparationOutcome};
pub use failure::PreparationFailure;
pub use install_config::build as install_config;
pub use installer_cache::InstallerCacheEvent;
pub use manifests::check_patch;
pub use mirrors::{RegistryMirrors, SYSTEM_CA_BUNDLE, SiteMirrors};
pub use nodes::{IPV6_SETTINGS, file_name};
pub use prepare::prepare;
pub use registry::RegistryAccess;
pub use registry_limit::PreparationPermit;
pub use release::ReleaseInfo;
pub use signers::{Signers, keyring};
pub use site_catalogs::{SiteCatalog, SiteCatalogs};
pub use work_folder::PreparationLock;

#[cfg(test)]
mod tests;
