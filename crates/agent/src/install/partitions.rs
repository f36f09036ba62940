//! Partitions of a disk, which the written image brought.

use std::collections::BTreeMap;
use std::path::Path;

use crate::{Error, HostFiles};

/// Partitions by their numbers: device and size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PartitionTable {
    disk: String,
    /// Units: sectors of 512 bytes.
    size: u64,
    partitions: BTreeMap<u32, (String, u64)>,
}

impl PartitionTable {
    /// The kernel's view of a disk.
    ///
    /// Errors: it is no disk.
    pub(super) fn read(files: &HostFiles, disk: &Path) -> Result<Self, Error> {
        let name = disk.file_name().unwrap_or_default().to_string_lossy();
        let folder = format!("/sys/block/{name}");
        let missing = || Error::message(format!("the kernel lists no disk {}", disk.display()));
        let size = files
            .number(&format!("{folder}/size"))
            .ok_or_else(missing)?;
        let partition = |entry: &String| {
            let number = files.number(&format!("{folder}/{entry}/partition"))?;
            let size = files.number(&format!("{folder}/{entry}/size"))?;
            Some((number, (format!("/dev/{entry}"), size)))
        };
        let partitions = files.names(&folder).iter().filter_map(partition).collect();
        Ok(Self {
            disk: disk.display().to_string(),
            size,
            partitions,
        })
    }

    /// Errors: no partition has the number.
    pub(super) fn device(&self, number: u32) -> Result<&str, Error> {
        self.partitions
            .get(&number)
            .map(|(device, _)| device.as_str())
            .ok_or_else(|| Error::message(format!("{} has no partition {number}", self.disk)))
    }

    /// The part of the disk that is left when a partition has grown to twice its size. Units: percent.
    pub(super) fn free_percent_after_doubling(&self, number: u32) -> u64 {
        let sizes = self.partitions.values().map(|(_, size)| size);
        let used: u64 = sizes.fold(0, |sum, size| sum.saturating_add(*size));
        let more = self.partitions.get(&number).map_or(0, |(_, size)| *size);
        let left = self.size.saturating_sub(used.saturating_add(more));
        left.saturating_mul(100) / self.size.max(1)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::fs;

    /// A host with a disk that coreos-installer has written.
    pub(in crate::install) fn host() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let disk = root.path().join("sys/block/nvme0n1");
        for (number, size) in [(1, 2048), (2, 260_096), (3, 786_432), (4, 5_000_000)] {
            let folder = disk.join(format!("nvme0n1p{number}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("partition"), format!("{number}\n")).unwrap();
            fs::write(folder.join("size"), format!("{size}\n")).unwrap();
        }
        fs::create_dir_all(disk.join("queue")).unwrap();
        fs::write(disk.join("size"), "20000000\n").unwrap();
        root
    }

    #[test]
    fn partitions_have_devices_and_sizes() {
        let root = host();
        let files = HostFiles::below(root.path());
        let table = PartitionTable::read(&files, Path::new("/dev/nvme0n1")).unwrap();
        assert_eq!(table.device(4).unwrap(), "/dev/nvme0n1p4");
        let error = table.device(5).unwrap_err().to_string();
        assert_eq!(error, "/dev/nvme0n1 has no partition 5");
        assert_eq!(table.free_percent_after_doubling(4), 44);
        fs::write(root.path().join("sys/block/nvme0n1/size"), "7000000").unwrap();
        let table = PartitionTable::read(&files, Path::new("/dev/nvme0n1")).unwrap();
        assert_eq!(table.free_percent_after_doubling(4), 0);
        assert!(PartitionTable::read(&files, Path::new("/dev/sda")).is_err());
    }
}
