//! The install-config: the input of the installer.
//!
//! Built from a cluster and its hosts, then overlaid with the user's overrides.
//! Source: assisted-service, internal/installcfg/builder/builder.go, internal/installcfg/installcfg.go.

mod build;
mod overrides;
mod platform;
mod roles;
mod schema;

pub use build::{ImageMirror, InstallConfigContext, build};
pub use overrides::{check, merge, update};

pub(crate) use roles::effective_role;

#[cfg(test)]
mod tests;
