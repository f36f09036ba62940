//! The medium that the host booted from: virtual media can get lost, and all programs hang then.

use std::fs::File;
use std::io::Read as _;

use crate::HostFiles;
use crate::mounts::Mounts;

/// Where a full image mounts its medium; minimal and network boots have everything in memory.
const MOUNT_POINT: &str = "/run/media/iso";

/// Reads the medium's first bytes.
///
/// Errors: the medium is lost, as text for the service.
/// Source: assisted-installer-agent, src/commands/step_processor.go.
pub(crate) fn check(files: &HostFiles) -> Result<(), String> {
    let mounts = Mounts::read(files);
    let Some(device) = mounts
        .source_of(MOUNT_POINT)
        .filter(|path| path.starts_with("/dev"))
    else {
        return Ok(());
    };
    let read = File::open(files.path(device)).and_then(|mut file| file.read_exact(&mut [0; 2]));
    read.map_err(|error| {
        format!("cannot read the boot medium {device}, it was likely disconnected: {error}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_lost_medium_is_noticed() {
        let root = tempfile::tempdir().unwrap();
        let files = HostFiles::below(root.path());
        assert_eq!(check(&files), Ok(()));
        fs::create_dir_all(root.path().join("proc/1")).unwrap();
        let mount = "24 22 11:0 / /run/media/iso ro - iso9660 /dev/sr0 ro\n";
        fs::write(root.path().join("proc/1/mountinfo"), mount).unwrap();
        assert!(check(&files).unwrap_err().contains("/dev/sr0"));
        fs::create_dir_all(root.path().join("dev")).unwrap();
        fs::write(root.path().join("dev/sr0"), "xx").unwrap();
        assert_eq!(check(&files), Ok(()));
    }
}
