//! Memory of the host.
//!
//! Source: assisted-installer-agent, src/inventory/memory.go.

use model::inventory::{Memory, MemoryMethod};

use super::dmi::DmiTables;
use crate::HostFiles;

pub(super) fn memory(files: &HostFiles, dmi: &DmiTables) -> Memory {
    let usable = usable(files);
    let (physical, method) = [
        (dmi.memory(), MemoryMethod::Dmidecode),
        (online_blocks(files), MemoryMethod::Ghw),
        (usable, MemoryMethod::Meminfo),
    ]
    .into_iter()
    .find(|(bytes, _)| *bytes != 0)
    .map_or((0, None), |(bytes, method)| (bytes, Some(method)));
    Memory {
        physical_bytes: i64::try_from(physical).unwrap_or(i64::MAX),
        usable_bytes: i64::try_from(usable).unwrap_or(i64::MAX),
        physical_bytes_method: method.map(Into::into),
    }
}

/// The memory that the kernel manages. Units: bytes.
fn usable(files: &HostFiles) -> u64 {
    let text = files.text("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or(0) << 10
}

/// The memory blocks that the firmware reports, for machines without tables. Units: bytes.
fn online_blocks(files: &HostFiles) -> u64 {
    const FOLDER: &str = "/sys/devices/system/memory";
    let size = files.text(&format!("{FOLDER}/block_size_bytes"));
    let size = size.and_then(|text| u64::from_str_radix(&text, 16).ok());
    let names = files.names(FOLDER);
    let online = names
        .iter()
        .filter(|name| name.starts_with("memory"))
        .filter(|name| files.text(&format!("{FOLDER}/{name}/online")).as_deref() == Some("1"))
        .count();
    size.unwrap_or(0).saturating_mul(online as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_kernel_s_memory_is_the_last_resort() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc")).unwrap();
        fs::write(root.path().join("proc/meminfo"), "MemTotal:   1024 kB\n").unwrap();
        let files = HostFiles::below(root.path());
        let dmi = DmiTables::read(&files);
        let found = memory(&files, &dmi);
        assert_eq!(
            (found.physical_bytes, found.usable_bytes),
            (1 << 20, 1 << 20)
        );
        assert_eq!(
            found.physical_bytes_method,
            Some(MemoryMethod::Meminfo.into())
        );
        let block = root.path().join("sys/devices/system/memory/memory0");
        fs::create_dir_all(&block).unwrap();
        fs::write(block.join("online"), "1\n").unwrap();
        fs::write(block.with_file_name("block_size_bytes"), "8000000\n").unwrap();
        let found = memory(&files, &dmi);
        assert_eq!(found.physical_bytes, 128 << 20);
        assert_eq!(found.physical_bytes_method, Some(MemoryMethod::Ghw.into()));
    }
}
