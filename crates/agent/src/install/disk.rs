//! Disks before an installation: remains of earlier systems would confuse the new one.
//!
//! Source: openshift/assisted-service, the package preinstallutils of assisted-installer.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use crate::command::{run, succeed};
use crate::{Error, HostFiles};

const TIMEOUT: Duration = Duration::from_mins(2);

/// Overwrites the first sector, with the partition table.
pub(super) fn erase_start(disk: &Path) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(disk)?;
    file.write_all(&[0; 512])?;
    file.sync_all()
}

/// Removes volume groups, arrays and signatures from a disk.
///
/// Errors: a signature cannot be removed.
pub(super) async fn clean(files: &HostFiles, disk: &Path) -> Result<(), Error> {
    let disk = disk.to_string_lossy().into_owned();
    for group in volume_groups(&disk).await {
        attempt("vgremove", &["--yes", "--force", &group]).await;
    }
    let name = disk.trim_start_matches("/dev/");
    for array in holders(files, name)
        .iter()
        .filter(|holder| holder.starts_with("md"))
    {
        attempt("mdadm", &["--stop", &format!("/dev/{array}")]).await;
    }
    succeed("wipefs", &["--all", "--force", &disk], TIMEOUT)
        .await
        .map(drop)
}

/// Volume groups with a part on the disk or on a partition of it.
async fn volume_groups(disk: &str) -> Vec<String> {
    let arguments = ["--noheadings", "--options", "pv_name,vg_name"];
    let output = run("pvs", &arguments, TIMEOUT)
        .await
        .map(|output| output.stdout);
    groups_of(&output.unwrap_or_default(), disk)
}

fn groups_of(output: &str, disk: &str) -> Vec<String> {
    let mut groups: Vec<String> = output
        .lines()
        .filter_map(|line| line.trim().split_once(char::is_whitespace))
        .filter(|(volume, _)| is_part_of(volume, disk))
        .map(|(_, group)| group.trim().to_owned())
        .collect();
    groups.sort();
    groups.dedup();
    groups
}

/// Whether a device is the disk or a partition: `/dev/sda1`, `/dev/nvme0n1p1`.
fn is_part_of(device: &str, disk: &str) -> bool {
    device.strip_prefix(disk).is_some_and(|end| {
        let number = end.strip_prefix('p').unwrap_or(end);
        number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Devices that are made of the disk or its partitions.
fn holders(files: &HostFiles, name: &str) -> Vec<String> {
    let folder = format!("/sys/block/{name}");
    let mut holders = files.names(&format!("{folder}/holders"));
    for partition in files
        .names(&folder)
        .iter()
        .filter(|entry| entry.starts_with(name))
    {
        holders.extend(files.names(&format!("{folder}/{partition}/holders")));
    }
    holders.sort();
    holders.dedup();
    holders
}

/// A failure shows in `wipefs`, at the latest.
async fn attempt(program: &str, arguments: &[&str]) {
    if let Err(error) = succeed(program, arguments, TIMEOUT).await {
        tracing::warn!(error = error.chain(), "disk not cleaned");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_other_disks_stay() {
        let output = "  /dev/sda2  rhel\n  /dev/sdab1 other\n  /dev/sda   data\n  /dev/sdb1\n";
        assert_eq!(groups_of(output, "/dev/sda"), ["data", "rhel"]);
        assert!(is_part_of("/dev/nvme0n1p3", "/dev/nvme0n1"));
        assert!(!is_part_of("/dev/nvme0n10", "/dev/nvme0n2"));
    }

    #[test]
    fn the_first_sector_is_erased() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [1; 1024]).unwrap();
        erase_start(file.path()).unwrap();
        let content = std::fs::read(file.path()).unwrap();
        assert_eq!(
            (&content[..512], &content[512..]),
            (&[0; 512][..], &[1; 512][..])
        );
    }
}
