//! Packages of Cargo.lock.

use anyhow::{Context as _, Result};
use semver::Version;
use serde::Deserialize;

/// A locked package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LockedPackage {
    pub(super) name: String,
    pub(super) version: Version,
}

#[derive(Debug, Deserialize)]
struct Lock {
    package: Vec<LockEntry>,
}

#[derive(Debug, Deserialize)]
struct LockEntry {
    name: String,
    version: Version,
    /// Absent for members of the workspace, which have no advisories.
    source: Option<String>,
}

/// The packages that come from a registry.
pub(super) fn parse(text: &str) -> Result<Vec<LockedPackage>> {
    let lock: Lock = toml::from_str(text).context("reading Cargo.lock")?;
    let foreign = lock
        .package
        .into_iter()
        .filter(|entry| entry.source.is_some());
    let package = |LockEntry { name, version, .. }| LockedPackage { name, version };
    Ok(foreign.map(package).collect())
}
