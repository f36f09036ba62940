//! iSCSI disks: a host boots from one only when its firmware knows the target (iBFT).
//!
//! Source: assisted-installer-agent, src/inventory/disks.go.

use super::device::BlockDevice;

const FIRMWARE: &str = "/sys/firmware/ibft";

/// Reasons against an installation.
pub(super) fn obstacles(device: &BlockDevice<'_>) -> Vec<String> {
    let mut reasons = Vec::new();
    match device
        .files()
        .text(&format!("/sys/block/{}/device/state", device.name))
        .as_deref()
    {
        Some("running") => {}
        Some(_) => reasons.push("iSCSI disk is not in running state".to_owned()),
        None => reasons.push("Failed to read state of iSCSI disk".to_owned()),
    }
    reasons.extend(missing_in_firmware(device));
    reasons
}

fn missing_in_firmware(device: &BlockDevice<'_>) -> Option<String> {
    let files = device.files();
    let Some(session) = part(device, "session") else {
        return Some("Cannot find iSCSI session".to_owned());
    };
    let Some(target) = files.text(&format!("/sys/class/iscsi_session/{session}/targetname")) else {
        return Some("Cannot find iSCSI target name".to_owned());
    };
    if !files.exists(FIRMWARE) {
        return Some("iBFT firmware is missing".to_owned());
    }
    let is_known = files
        .names(FIRMWARE)
        .iter()
        .filter(|name| name.starts_with("target"))
        .filter_map(|name| files.text(&format!("{FIRMWARE}/{name}/target-name")))
        .any(|name| name == target);
    (!is_known).then(|| "iSCSI disk is missing from iBFT".to_owned())
}

/// The address that the host connects from.
pub(super) fn host_address(device: &BlockDevice<'_>) -> Option<String> {
    let host = part(device, "host")?;
    device
        .files()
        .text(&format!("/sys/class/iscsi_host/{host}/ipaddress"))
}

/// The part of the device's path with a beginning and a number: `/sys/devices/platform/host2/session1/target2:0:0/…`.
fn part(device: &BlockDevice<'_>, beginning: &str) -> Option<String> {
    let path = device.device_path()?;
    let part = path.split('/').find(|part| {
        part.strip_prefix(beginning)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    });
    part.map(str::to_owned)
}
