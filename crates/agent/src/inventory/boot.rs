//! How the host booted.
//!
//! Source: assisted-installer-agent, src/inventory/boot.go.

use model::inventory::{Boot, DeviceType, SecureBootState};

use crate::HostFiles;
use crate::mounts::Mounts;

/// The variable of UEFI: four bytes of attributes, then one byte, 1 when enabled.
const SECURE_BOOT: &str =
    "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";

pub(super) fn boot(files: &HostFiles, mounts: &Mounts) -> Boot {
    let command_line = files.bytes("/proc/cmdline").unwrap_or_default();
    let command_line = String::from_utf8_lossy(&command_line).into_owned();
    let pxe_interface = command_line
        .split_whitespace()
        .find_map(|argument| argument.strip_prefix("BOOTIF="))
        .unwrap_or_default()
        .to_owned();
    let mode = if files.exists("/sys/firmware/efi") {
        "uefi"
    } else {
        "bios"
    };
    Boot {
        current_boot_mode: mode.to_owned(),
        pxe_interface,
        command_line,
        secure_boot_state: Some(secure_boot(files).into()),
        device_type: mounts.source_of("/sysroot").map(|source| {
            // A live system is a file of its medium or of memory.
            let kind = if source.starts_with("/dev/loop") {
                DeviceType::Ephemeral
            } else {
                DeviceType::Persistent
            };
            kind.into()
        }),
    }
}

fn secure_boot(files: &HostFiles) -> SecureBootState {
    if !files.exists(SECURE_BOOT) {
        return SecureBootState::NotSupported;
    }
    match files.bytes(SECURE_BOOT).as_deref() {
        Some([_, _, _, _, 0]) => SecureBootState::Disabled,
        Some([_, _, _, _, 1]) => SecureBootState::Enabled,
        _ => SecureBootState::Unknown,
    }
}
