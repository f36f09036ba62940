//! Logs of the host, collected and uploaded.
//!
//! Source: assisted-installer-agent, src/logs_sender.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use uuid::Uuid;

use crate::Error;
use crate::api::ServiceClient;

/// Files of the archive with the program whose output they are. Programs that a host does not have are left out.
const SOURCES: [(&str, &str, &[&str]); 8] = [
    ("journal.logs", "journalctl", &["--all", "--no-pager"]),
    (
        "agent.logs",
        "journalctl",
        &["--all", "--no-pager", "--unit", "agent.service"],
    ),
    (
        "bootkube.logs",
        "journalctl",
        &["--all", "--no-pager", "--unit", "bootkube.service"],
    ),
    (
        "kubelet.logs",
        "journalctl",
        &["--all", "--no-pager", "--unit", "kubelet.service"],
    ),
    ("dmesg.logs", "dmesg", &["--ctime"]),
    ("mount.logs", "findmnt", &["--df"]),
    (
        "disks.logs",
        "lsblk",
        &[
            "--output",
            "NAME,MAJ:MIN,SIZE,TYPE,FSTYPE,MODEL,UUID,WWN,HCTL,STATE",
        ],
    ),
    ("addresses.logs", "ip", &["address"]),
];

/// Collects the logs into an archive, and uploads it. The service hears of the beginning and of the end.
///
/// Errors: the archive cannot be written; the service's.
pub(crate) async fn upload(
    api: &ServiceClient,
    cluster_id: Uuid,
    host_id: Uuid,
) -> Result<(), Error> {
    report(api, host_id, "requested").await;
    let folder = Path::new("/var/tmp");
    let archive = folder.join(format!("logs-{host_id}.tar.gz"));
    let (path, folder) = (archive.clone(), folder.to_owned());
    let written = tokio::task::spawn_blocking(move || collect(&path, &folder, host_id));
    let written = written
        .await
        .map_err(|error| Error::new("collecting logs", error))?;
    report(api, host_id, "collecting").await;
    let sent = match written {
        Ok(()) => api.upload_logs(cluster_id, host_id, &archive).await,
        Err(error) => Err(Error::io(format!("writing {}", archive.display()), error)),
    };
    let _ = std::fs::remove_file(&archive);
    sent?;
    report(api, host_id, "completed").await;
    Ok(())
}

async fn report(api: &ServiceClient, host_id: Uuid, state: &str) {
    if let Err(error) = api.logs_progress(host_id, state).await {
        tracing::warn!(error = error.chain(), "collection of logs not reported");
    }
}

fn collect(archive: &Path, folder: &Path, host_id: Uuid) -> std::io::Result<()> {
    let gzip = GzEncoder::new(File::create(archive)?, Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    for (name, program, arguments) in SOURCES {
        // The length precedes the content in an archive: the output goes to a file without a name first.
        let output = folder.join(format!(".{host_id}-{name}"));
        let mut file = File::create_new(&output)
            .or_else(|_| std::fs::remove_file(&output).and_then(|()| File::create_new(&output)))?;
        std::fs::remove_file(&output)?;
        let ran = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(Stdio::null())
            .status();
        if ran.is_ok() {
            // The program's writes moved the shared offset.
            std::io::Seek::rewind(&mut file)?;
            rustix::fs::fchmod(&file, rustix::fs::Mode::from_raw_mode(0o600))?;
            tar.append_file(format!("logs_host_{host_id}/{name}"), &mut reopened(&file)?)?;
        }
    }
    tar.into_inner()?.finish()?.sync_all()
}

/// The file with an offset and a mode of its own, for reading.
fn reopened(file: &File) -> std::io::Result<File> {
    use std::os::fd::AsRawFd as _;
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_has_the_output_of_programs() {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("logs.tar.gz");
        collect(&archive, folder.path(), Uuid::nil()).unwrap();
        let gzip = flate2::read::GzDecoder::new(File::open(&archive).unwrap());
        let mut tar = tar::Archive::new(gzip);
        let names: Vec<(String, u64)> = tar
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                (entry.path().unwrap().display().to_string(), entry.size())
            })
            .collect();
        let mounts = names.iter().find(|(name, _)| name.ends_with("/mount.logs"));
        assert!(mounts.is_some_and(|(_, size)| *size > 0), "{names:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
