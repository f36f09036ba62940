//! The boot order of UEFI: the installed disk comes first, before the discovery medium that is still attached.
//!
//! Firmware of the BIOS kind has no interface for it.
//!
//! Source: openshift/assisted-installer, src/ops, SetBootOrder.

use std::path::Path;
use std::time::Duration;

use super::partitions::PartitionTable;
use crate::command::{run, succeed};
use crate::{Error, HostFiles};

const PROGRAM: &str = "efibootmgr";
const FIRMWARE: &str = "/sys/firmware/efi";
const EFI_PARTITION: u32 = 2;
const MOUNT: &str = "/mnt";
/// Also of entries from earlier installations, which are removed by it.
const LABEL: &str = "Red Hat Enterprise Linux";
/// Folders of the boot loader, by the operating system.
const VENDORS: [&str; 2] = ["redhat", "centos"];
const LOADER: &str = if cfg!(target_arch = "aarch64") {
    "shimaa64.efi"
} else {
    "shimx64.efi"
};
const TIMEOUT: Duration = Duration::from_mins(1);
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(5);

/// Makes the disk the first entry of the firmware.
///
/// Errors: the disk has no boot loader for UEFI; the firmware refuses.
pub(super) async fn set(files: &HostFiles, disk: &Path) -> Result<(), Error> {
    if !files.exists(FIRMWARE) {
        tracing::info!("the boot order of a BIOS is not changed");
        return Ok(());
    }
    let loader = loader(files, disk).await?;
    let path = disk.to_string_lossy();
    let number = EFI_PARTITION.to_string();
    let arguments = [
        "--verbose",
        "--disk",
        &path,
        "--part",
        &number,
        "--create",
        "--label",
        LABEL,
        "--loader",
        &loader,
    ];
    let output = run(PROGRAM, &arguments, TIMEOUT).await?;
    if output.code != Some(0) {
        return Err(Error::message(format!(
            "{PROGRAM} ended with {:?}: {}",
            output.code,
            output.stderr.trim()
        )));
    }
    for entry in duplicates(&output.stdout).chain(duplicates(&output.stderr)) {
        let arguments = ["--delete-bootnum", "--bootnum", entry];
        if let Err(error) = succeed(PROGRAM, &arguments, TIMEOUT).await {
            tracing::warn!(
                entry,
                error = error.chain(),
                "earlier boot entry not removed"
            );
        }
    }
    Ok(())
}

/// The path of the boot loader in the partition of UEFI.
async fn loader(files: &HostFiles, disk: &Path) -> Result<String, Error> {
    let mut attempt = 1;
    // The kernel may still read the new partition table.
    loop {
        let device = PartitionTable::read(files, disk)
            .and_then(|table| table.device(EFI_PARTITION).map(str::to_owned));
        let mounted = match device {
            Ok(device) => succeed("mount", &["-o", "ro", &device, MOUNT], TIMEOUT).await,
            Err(error) => Err(error),
        };
        match mounted {
            Ok(_) => break,
            Err(error) if attempt == ATTEMPTS => return Err(error),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
        attempt += 1;
    }
    let folders = files.names(&format!("{MOUNT}/EFI"));
    if let Err(error) = succeed("umount", &[MOUNT], TIMEOUT).await {
        tracing::warn!(error = error.chain(), "the partition of UEFI stays mounted");
    }
    loader_in(&folders)
        .ok_or_else(|| Error::message(format!("{} has no boot loader for UEFI", disk.display())))
}

fn loader_in(folders: &[String]) -> Option<String> {
    let vendor = VENDORS
        .iter()
        .find(|vendor| folders.iter().any(|folder| folder == *vendor))?;
    Some(format!("\\EFI\\{vendor}\\{LOADER}"))
}

/// Numbers of entries with the same label: `** Warning ** : Boot0004 has same label Red Hat Enterprise Linux`.
fn duplicates(output: &str) -> impl Iterator<Item = &str> {
    output.lines().filter_map(|line| {
        let (begin, label) = line.split_once(" has same label ")?;
        let (_, number) = begin.rsplit_once("Boot")?;
        let is_number = number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_number && label.trim() == LABEL).then_some(number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_entries_are_found() {
        let output = "efibootmgr: ** Warning ** : Boot000A has same label Red Hat Enterprise Linux\n\
            efibootmgr: ** Warning ** : Boot0004 has same label Windows\n\
            efibootmgr: ** Warning ** : Boot-x has same label Red Hat Enterprise Linux\n\
            BootCurrent: 0001\nBootOrder: 0003,0001\nBoot0003* Red Hat Enterprise Linux\n";
        assert_eq!(duplicates(output).collect::<Vec<_>>(), ["000A"]);
    }

    #[test]
    fn the_loader_is_that_of_the_vendor() {
        let found = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            loader_in(&names)
        };
        assert_eq!(
            found(&["BOOT", "redhat"]),
            Some(format!("\\EFI\\redhat\\{LOADER}"))
        );
        assert_eq!(found(&["centos"]), Some(format!("\\EFI\\centos\\{LOADER}")));
        assert_eq!(found(&["BOOT"]), None);
    }

    #[tokio::test]
    async fn a_bios_has_no_order() {
        let root = tempfile::tempdir().unwrap();
        let files = HostFiles::below(root.path());
        set(&files, Path::new("/dev/no-such")).await.unwrap();
    }
}
