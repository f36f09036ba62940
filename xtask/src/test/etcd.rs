//! etcd of Debian, for the tests of replaced control nodes. It is unpacked: its package would start a server.

use std::path::PathBuf;

use anyhow::Result;

use super::boot_tools::{download, unpacked};

/// The server, and the client that restores snapshots.
const PACKAGES: [&str; 2] = ["etcd-server", "etcd-client"];

/// The folder of its programs; downloads them first when they are missing.
pub(super) fn ensure() -> Result<PathBuf> {
    let folder = unpacked("etcd", |folder| download(folder, &PACKAGES, None))?;
    Ok(folder.join("usr/bin"))
}
