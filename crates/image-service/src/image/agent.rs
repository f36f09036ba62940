//! The discovery agent inside an image: an archive beside the ignition.
//!
//! The switch to the live system removes the root file system of the initrd; `/run` stays. The unit `agent.service` of
//! the ignition takes the program from there.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use ignition::MemberTree;
use ignition::cpio::{LINK, REGULAR};
use model::Error;
use tokio::sync::OnceCell;

/// Longest program. Units: bytes. Ours has less than 8 MiB.
const MAX_PROGRAM: u64 = 64 << 20;
const PROGRAM_PATH: &str = "/usr/libexec/atoll-agent";
const UNIT_PATH: &str = "/etc/systemd/system/atoll-agent-handover.service";
const WANTED: &str = "/etc/systemd/system/initrd.target.wants/atoll-agent-handover.service";
/// `/run/atoll/agent` is the path in the agent's unit. Source: the API server, `discovery/agent.rs`.
const UNIT: &str = include_str!("atoll-agent-handover.service");

/// Archives with the agents of a folder, made when they are first needed.
#[derive(Debug)]
pub(crate) struct AgentArchives {
    folder: PathBuf,
    /// By architecture: at most those of the OS images.
    archives: Mutex<HashMap<String, Arc<OnceCell<Bytes>>>>,
}

impl AgentArchives {
    /// Agents in a folder: files `atoll-agent-x86_64`, `atoll-agent-arm64`…
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            archives: Mutex::default(),
        }
    }

    /// The archive of an architecture. Units: some megabytes, which all images share.
    ///
    /// Errors: `Conflict` – the folder has no such agent.
    pub(crate) async fn archive(&self, architecture: &str) -> Result<Bytes, Error> {
        let cell = {
            let mut archives = self.archives.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(archives.entry(architecture.to_owned()).or_default())
        };
        let file = self.folder.join(format!("atoll-agent-{architecture}"));
        let packed = cell.get_or_try_init(|| async {
            let path = file.clone();
            let packed = tokio::task::spawn_blocking(move || pack(&path)).await;
            packed.map_err(io::Error::other)?
        });
        packed.await.cloned().map_err(|error: io::Error| {
            Error::conflict(format!(
                "the infra-env has an embedded agent, which cannot be read from {}: {error}; set AGENT_DIR to the \
                 folder of the agents, or embedded_agent of the infra-env to false",
                file.display()
            ))
        })
    }
}

fn pack(path: &Path) -> io::Result<Bytes> {
    let length = path.metadata()?.len();
    if length > MAX_PROGRAM {
        return Err(io::Error::other(format!(
            "it has {length} bytes, more than {MAX_PROGRAM}"
        )));
    }
    let mut members = MemberTree::default();
    members.add(PROGRAM_PATH, REGULAR | 0o755, std::fs::read(path)?);
    members.add(UNIT_PATH, REGULAR | 0o644, UNIT);
    members.add(WANTED, LINK | 0o777, UNIT_PATH);
    members.pack().map(Bytes::from).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_archive_has_the_program_and_its_unit() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("atoll-agent-arm64"), "program").unwrap();
        let archives = AgentArchives::new(folder.path());
        let archive = archives.archive("arm64").await.unwrap();
        let files = ignition::archive::read(&archive).unwrap();
        let file = |name: &str| files.iter().find(|file| file.name == name).unwrap();
        assert_eq!(file(PROGRAM_PATH).data, b"program");
        assert_eq!(file(WANTED).data, UNIT_PATH.as_bytes());
        assert!(UNIT.contains(PROGRAM_PATH) && UNIT.contains("/run/atoll/agent"));
        let error = archives.archive("x86_64").await.unwrap_err();
        let text = model::error::chain(&error);
        assert!(
            text.contains("atoll-agent-x86_64") && text.contains("AGENT_DIR"),
            "{text}"
        );
        // Once it is there, it is used.
        std::fs::write(folder.path().join("atoll-agent-x86_64"), "program").unwrap();
        assert!(archives.archive("x86_64").await.is_ok());
    }
}
