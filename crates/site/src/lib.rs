//! A site on this machine: the pod and its folder, its installation from a bundle, backups, and its facts for `doctor`.
//!
//! Nothing is printed or parsed here: operations report a [`SiteEvent`] for each of their steps. The one invariant: an operation
//! that ends anywhere is continued by the same call, and replaced content is kept under another name.

pub mod backup;
pub mod bundle_content;
mod event;
pub mod facts;
pub mod install;
pub mod pod;
pub mod podman;

pub use event::{BundleSignature, SiteEvent, SiteObserver, SiteWork};
