//! Root device, RAID volumes and network interfaces. Source: baremetal-operator, `validateRootDeviceHints`,
//! `validateRAID`, `validateNetworkInterfaces`.

use std::collections::HashSet;

use super::finding::{FindingList, shown};
use super::scope::{CheckScope, bmc_address};
use crate::{MacAddress, RecordNode};

const HARDWARE: [&str; 3] = ["spec", "raid", "hardwareRAIDVolumes"];
const SOFTWARE: [&str; 3] = ["spec", "raid", "softwareRAIDVolumes"];
const INTERFACES: [&str; 2] = ["spec", "networkInterfaces"];
/// Most software RAID volumes.
const MAX_SOFTWARE: usize = 2;

pub(super) fn root_device(
    host: &RecordNode<'_>,
    _: &CheckScope<'_>,
    findings: &mut FindingList<'_>,
) {
    let field = &["spec", "rootDeviceHints", "deviceName"];
    let device = host.text(field);
    if !device.is_empty() {
        let name = device.strip_prefix("/dev/");
        let name = name.map(|name| name.strip_prefix("disk/by-path/").unwrap_or(name));
        if name.is_none_or(|name| name.is_empty() || name.contains('/')) {
            let reason = format!(
                "{} is no path in /dev/ or /dev/disk/by-path/",
                shown(device)
            );
            let remedy = "write such a path, or use wwn or serialNumber";
            findings.error(host, field, reason, remedy);
        }
    }
    let field = &["spec", "rootDeviceHints", "hctl"];
    let hctl = host.text(field);
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !hctl.is_empty() && (hctl.split(':').count() != 4 || !hctl.split(':').all(is_number)) {
        let reason = format!("{} is no SCSI address", shown(hctl));
        findings.error(
            host,
            field,
            reason,
            "write host:channel:target:lun, as 0:0:1:0",
        );
    }
}

pub(super) fn raid(host: &RecordNode<'_>, _: &CheckScope<'_>, findings: &mut FindingList<'_>) {
    let (hardware, software) = (host.list(&HARDWARE), host.list(&SOFTWARE));
    if !hardware.is_empty() && !software.is_empty() {
        let reason = "is given beside hardwareRAIDVolumes, and a host has one of both";
        findings.error(host, &SOFTWARE, reason, "remove one of them");
    }
    let address = bmc_address(host);
    let without_raid = address.filter(|address| !address.scheme().can_inspect());
    if let Some(address) = without_raid.filter(|_| !hardware.is_empty()) {
        let reason = format!("{} cannot configure RAID", address.scheme().name);
        findings.error(host, &HARDWARE, reason, "use a Redfish address");
    }
    for index in 0..hardware.len() {
        hardware_volume(host, &index.to_string(), findings);
    }
    software_volumes(host, software.len(), findings);
}

fn hardware_volume(host: &RecordNode<'_>, index: &str, findings: &mut FindingList<'_>) {
    let at = |name: &'static str| [HARDWARE[0], HARDWARE[1], HARDWARE[2], index, name];
    let disks = host.list(&at("physicalDisks")).len();
    if disks == 0 {
        return;
    }
    if host.text(&at("controller")).is_empty() {
        let reason = "is missing, and physicalDisks are those of a controller";
        findings.error(host, &at("controller"), reason, "add the controller");
    }
    let number = host.get(&at("numberOfPhysicalDisks"));
    if let Some(located_yaml::v1_1::Value::Integer(number)) = number.map(|it| &it.value)
        && usize::try_from(*number) != Ok(disks)
    {
        let reason = format!("{number} is not the number of physicalDisks, {disks}");
        findings.error(host, &at("numberOfPhysicalDisks"), reason, "remove it");
    }
}

fn software_volumes(host: &RecordNode<'_>, count: usize, findings: &mut FindingList<'_>) {
    if count > MAX_SOFTWARE {
        let reason = format!("has {count} volumes, and at most {MAX_SOFTWARE} are possible");
        findings.error(host, &SOFTWARE, reason, "remove some");
    }
    let mut roots = 0;
    for index in (0..count).map(|index| index.to_string()) {
        let at = |name: &'static str| [SOFTWARE[0], SOFTWARE[1], SOFTWARE[2], &index, name];
        let disks = at("physicalDisks");
        if host.get(&disks).is_some() && host.list(&disks).len() < 2 {
            findings.error(host, &disks, "has fewer than two disks", "add one");
        }
        if host.flag(&at("rootVolume")) != Some(true) {
            continue;
        }
        roots += 1;
        if roots == 2 {
            let reason = "is true for a second volume";
            findings.error(host, &at("rootVolume"), reason, "choose one");
        }
        if host.text(&at("level")) != "1" {
            let reason = "is not 1, and the host would not boot after the failure of a disk";
            findings.error(
                host,
                &at("level"),
                reason,
                "write level: \"1\" for the root volume",
            );
        }
    }
    let hints = &["spec", "rootDeviceHints"];
    if roots > 0 && host.get(hints).is_some() {
        let reason = "is given beside a root volume";
        findings.error(host, hints, reason, "remove one of them");
    }
}

pub(super) fn network_interfaces(
    host: &RecordNode<'_>,
    _: &CheckScope<'_>,
    findings: &mut FindingList<'_>,
) {
    let mut seen = HashSet::new();
    for index in (0..host.list(&INTERFACES).len()).map(|index| index.to_string()) {
        let at = |name: &'static str| [INTERFACES[0], INTERFACES[1], &index, name];
        let (name, mac) = (host.text(&at("name")), host.text(&at("macAddress")));
        let key = match (name, mac) {
            ("", "") => {
                let reason = "selects no interface";
                findings.error(host, &at("name"), reason, "add name or macAddress");
                continue;
            }
            (name, "") => name.to_owned(),
            ("", mac) => mac.to_ascii_lowercase(),
            _ => {
                let reason = "is given beside name, and an interface is selected by one of both";
                findings.error(host, &at("macAddress"), reason, "remove one of them");
                continue;
            }
        };
        if let Err(error) = mac.parse::<MacAddress>()
            && !mac.is_empty()
        {
            let reason = format!("{} {error}", shown(mac));
            findings.error(
                host,
                &at("macAddress"),
                reason,
                "write it as 52:54:00:00:00:10",
            );
        }
        if !seen.insert(key) {
            let field = if name.is_empty() {
                "macAddress"
            } else {
                "name"
            };
            findings.error(host, &at(field), "is selected twice", "remove one of them");
        }
    }
}
