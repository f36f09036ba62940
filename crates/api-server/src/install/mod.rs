//! Preparing an installation: from a ready cluster to the files its hosts boot into.
//!
//! The release image is read from the mirror's registry, the installer is taken out of it, run on the
//! install-config and the manifests, and its ignition files are completed for each host. What does not live here:
//! deciding whether a cluster may be installed (`rules`), rows and transitions (`app`). The one invariant: files of a
//! preparation are stored only when all of it succeeded.

pub mod context;
pub mod mirrors;
pub mod release;

pub use context::{Context, Failure, Input, Options, Outcome, RegistryAccess};
pub use mirrors::Mirrors;
pub use release::ReleaseInfo;
