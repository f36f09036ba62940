//! `boot_device`: the boot disk mirrored on several disks, and its root encrypted.

use located_yaml::Position;
use located_yaml::v1_2::{ConfigMember, ConfigNode};

use super::checked_object::CheckedObject;
use super::node::{flag, number, object, text, texts};
use super::spec::ButaneSpec;

/// Partition types of GPT.
const RESERVED: &str = "8DA63339-0007-60C0-C436-083AC8230908";
const BIOS_BOOT: &str = "21686148-6449-6E6F-744E-656564454649";
const PREP: &str = "9E1A2D38-C612-4316-AA26-8B49521E5A8B";
const EFI_SYSTEM: &str = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B";

/// A partition of a mirrored boot disk, before `boot` and `root`.
struct BootPartition {
    label: &'static str,
    /// Units: MiB. As on the images of the operating system: the boot loader is written to fixed places.
    size_mib: i64,
    kind: &'static str,
}

const fn partition(label: &'static str, size_mib: i64, kind: &'static str) -> BootPartition {
    BootPartition {
        label,
        size_mib,
        kind,
    }
}

/// Units: MiB.
const BOOT_SIZE_MIB: i64 = 384;

/// The first two partitions by layout.
///
/// Source: coreos/butane, config/fcos/v1_3/translate.go.
fn first_partitions(layout: &str) -> [BootPartition; 2] {
    let reserved = || partition("reserved", 1, RESERVED);
    let esp = || partition("esp", 127, EFI_SYSTEM);
    match layout {
        "x86_64" => [partition("bios", 1, BIOS_BOOT), esp()],
        "ppc64le" => [partition("prep", 4, PREP), reserved()],
        "aarch64" => [reserved(), esp()],
        _ => [reserved(), reserved()],
    }
}

/// Layouts of all versions that have `boot_device`, then those of fcos 1.6.
const LAYOUTS: [&str; 3] = ["aarch64", "ppc64le", "x86_64"];
const LAYOUTS_S390X: [&str; 3] = ["s390x-eckd", "s390x-virt", "s390x-zfcp"];

/// Devices of one mirror; more than any machine has disks.
const MAX_MIRRORS: usize = 256;

/// The rules of `boot_device`.
pub(super) fn check(object: &mut CheckedObject<'_, '_>) {
    let layout = object.node.get("layout").and_then(ConfigNode::as_text);
    let layout = layout.map(str::to_owned);
    let mirrors = object.count(&["mirror", "devices"]);
    if mirrors == 1 {
        object.refuse(
            &["mirror", "devices"],
            "a mirror needs at least two devices",
        );
    }
    if mirrors > MAX_MIRRORS {
        let reason = format!("a mirror has at most {MAX_MIRRORS} devices");
        object.refuse(&["mirror", "devices"], reason);
    }
    if mirrors > 0 && layout.is_none() {
        if object.spec.fcos >= 7 {
            object.refuse(&["mirror"], "a mirror needs boot_device.layout");
        } else {
            let reason = "a mirror needs boot_device.layout; x86_64 is assumed";
            object.doubt(&["mirror"], reason);
        }
    }
    if let Some(layout) = &layout {
        check_layout(object, layout, mirrors);
    }
    let is_s390x = layout
        .as_ref()
        .is_some_and(|layout| layout.starts_with("s390x"));
    let device = object.node.find(&["luks", "device"]);
    let has_device = device
        .and_then(ConfigNode::as_text)
        .is_some_and(|it| !it.is_empty());
    let has_method = object.count(&["luks", "tang"]) > 0
        || object.is_true(&["luks", "tpm2"])
        || object.is_true(&["luks", "cex", "enabled"]);
    if object.spec.fcos >= 7 && has_device && !has_method {
        object.refuse(
            &["luks"],
            "a device is encrypted by tang, tpm2 or cex: name one",
        );
    }
    if object.is_true(&["luks", "cex", "enabled"]) {
        if !is_s390x {
            let at: &[&str] = if layout.is_some() {
                &["layout"]
            } else {
                &["luks", "cex"]
            };
            object.refuse(at, "CEX needs a layout of s390x");
        }
        if object.count(&["luks", "tang"]) > 0 || object.is_true(&["luks", "tpm2"]) {
            object.refuse(&["luks"], "CEX is not possible together with tang or tpm2");
        }
    }
}

fn check_layout(object: &mut CheckedObject<'_, '_>, layout: &str, mirrors: usize) {
    let s390x = if object.spec.fcos >= 6 {
        &LAYOUTS_S390X[..]
    } else {
        &[]
    };
    if !LAYOUTS.contains(&layout) && !s390x.contains(&layout) {
        let known: Vec<&str> = LAYOUTS.iter().chain(s390x).copied().collect();
        let known = known.join(", ");
        object.refuse(
            &["layout"],
            format!("unknown layout {layout:?}, expected one of {known}"),
        );
        return;
    }
    if !s390x.contains(&layout) {
        return;
    }
    if mirrors > 0 {
        object.refuse(&["layout"], "s390x has no mirrored boot disk");
    }
    let prefix = match layout {
        "s390x-eckd" => "/dev/dasd",
        "s390x-zfcp" => "/dev/sd",
        _ => return,
    };
    let device = object.node.find(&["luks", "device"]);
    let device = device.and_then(ConfigNode::as_text).unwrap_or_default();
    if !is_disk(device, prefix) {
        let reason = format!("{layout} needs luks.device, as in {prefix}a; found {device:?}");
        object.refuse(&["layout"], reason);
    }
}

/// Whether the device ends in the prefix and one letter.
fn is_disk(device: &str, prefix: &str) -> bool {
    let letter = device.rfind(prefix).map(|at| &device[at + prefix.len()..]);
    letter.is_some_and(|letter| matches!(letter.as_bytes(), [b'a'..=b'z']))
}

/// The storage that `boot_device` describes; none when it has no effect. `boot` was checked; `tang` are the
/// servers as Ignition has them.
pub(super) fn storage(
    boot: &ConfigNode,
    tang: Option<&ConfigNode>,
    spec: &ButaneSpec,
) -> Option<ConfigNode> {
    let luks = boot.get("luks");
    let is_on = |path: &[&str]| {
        let value = luks.and_then(|luks| luks.find(path));
        value.and_then(ConfigNode::as_bool) == Some(true)
    };
    let has_cex = spec.fcos >= 6 && is_on(&["cex", "enabled"]);
    let has_tang = tang.is_some_and(|tang| !tang.items().is_empty());
    let luks = luks.filter(|_| has_cex || has_tang || is_on(&["tpm2"]));
    let devices = boot.find(&["mirror", "devices"]);
    let devices = devices.filter(|devices| !devices.items().is_empty());
    if luks.is_none() && devices.is_none() {
        return None;
    }
    let layout = boot.get("layout").and_then(ConfigNode::as_text);
    let layout = layout.unwrap_or("x86_64");
    let mut members = Vec::new();
    let mut filesystems = Vec::new();
    if let Some(devices) = devices {
        let mirror = Mirror { devices, layout };
        members.push(ConfigMember::new("disks", mirror.disks()));
        members.push(ConfigMember::new("raid", mirror.raid()));
        filesystems = mirror.filesystems();
    }
    if let Some(luks) = luks {
        let device = encrypted_device(layout, luks, devices.is_some());
        let volume = volume(luks, tang, &device, has_cex);
        members.push(ConfigMember::new(
            "luks",
            ConfigNode::list(luks.at, vec![volume]),
        ));
    }
    let root = match luks {
        Some(_) => "/dev/mapper/root",
        None => "/dev/md/md-root",
    };
    filesystems.push(filesystem(boot.at, root, "xfs", "root"));
    let filesystems = ConfigNode::list(boot.at, filesystems);
    members.push(ConfigMember::new("filesystems", filesystems));
    Some(ConfigNode::object(boot.at, members))
}

struct Mirror<'n> {
    devices: &'n ConfigNode,
    layout: &'n str,
}

impl Mirror<'_> {
    fn disks(&self) -> ConfigNode {
        let disks = self.devices.items().iter().enumerate();
        let disks = disks.map(|(index, device)| {
            let (at, number_of_disk) = (device.at, index + 1);
            let label = |name: &str| text("label", at, format!("{name}-{number_of_disk}"));
            let first = first_partitions(self.layout).map(|row| {
                let members = [
                    label(row.label),
                    number("sizeMiB", at, row.size_mib),
                    text("typeGuid", at, row.kind),
                ];
                object(at, members)
            });
            let boot = object(at, [label("boot"), number("sizeMiB", at, BOOT_SIZE_MIB)]);
            let root = object(at, [label("root")]);
            let partitions = first.into_iter().chain([boot, root]).collect();
            let members = [
                ConfigMember::new("device", device.clone()),
                ConfigMember::new("partitions", ConfigNode::list(at, partitions)),
                flag("wipeTable", at, true),
            ];
            object(at, members)
        });
        ConfigNode::list(self.devices.at, disks.collect())
    }

    fn raid(&self) -> ConfigNode {
        let at = self.devices.at;
        let raid = |name: &str, options: &[&str]| {
            let partitions: Vec<String> = (1..=self.devices.items().len())
                .map(|number| format!("/dev/disk/by-partlabel/{name}-{number}"))
                .collect();
            let mut members = vec![
                texts("devices", at, &partitions),
                text("level", at, "raid1"),
                text("name", at, format!("md-{name}")),
            ];
            if !options.is_empty() {
                members.push(texts("options", at, options));
            }
            ConfigNode::object(at, members)
        };
        // The superblock at the end: boot loaders that know no RAID read the partition as a file system.
        let arrays = vec![raid("boot", &["--metadata=1.0"]), raid("root", &[])];
        ConfigNode::list(at, arrays)
    }

    fn filesystems(&self) -> Vec<ConfigNode> {
        let has_esp = first_partitions(self.layout)
            .iter()
            .any(|row| row.label == "esp");
        let devices = self.devices.items().iter().enumerate().filter(|_| has_esp);
        let esp = devices.map(|(index, device)| {
            let label = format!("esp-{}", index + 1);
            let partition = format!("/dev/disk/by-partlabel/{label}");
            filesystem(device.at, &partition, "vfat", &label)
        });
        let boot = filesystem(self.devices.at, "/dev/md/md-boot", "ext4", "boot");
        esp.chain([boot]).collect()
    }
}

fn filesystem(at: Position, device: &str, format: &str, label: &str) -> ConfigNode {
    let members = [
        text("device", at, device),
        text("format", at, format),
        text("label", at, label),
        flag("wipeFilesystem", at, true),
    ];
    object(at, members)
}

fn encrypted_device(layout: &str, luks: &ConfigNode, is_mirrored: bool) -> String {
    let device = luks.get("device").and_then(ConfigNode::as_text);
    match (layout, device) {
        // The root partition by the disk's own numbering.
        ("s390x-eckd", Some(disk)) => format!("{disk}2"),
        ("s390x-zfcp", Some(disk)) => format!("{disk}4"),
        _ if is_mirrored => "/dev/md/md-root".to_owned(),
        _ => "/dev/disk/by-partlabel/root".to_owned(),
    }
}

fn volume(luks: &ConfigNode, tang: Option<&ConfigNode>, device: &str, has_cex: bool) -> ConfigNode {
    let at = luks.at;
    let copied = |names: &[&str]| -> Vec<ConfigMember> {
        let named = names.iter().filter_map(|name| {
            let value = luks.get(name)?;
            Some(ConfigMember::new(*name, value.clone()))
        });
        named.collect()
    };
    let unlocked = if has_cex {
        ConfigMember::new("cex", object(at, [flag("enabled", at, true)]))
    } else {
        let mut clevis = copied(&["threshold", "tpm2"]);
        let tang = tang.filter(|tang| !tang.items().is_empty());
        clevis.extend(tang.map(|tang| ConfigMember::new("tang", tang.clone())));
        ConfigMember::new("clevis", ConfigNode::object(at, clevis))
    };
    let mut members = vec![
        unlocked,
        text("device", at, device),
        text("label", at, "luks-root"),
        text("name", at, "root"),
        flag("wipeVolume", at, true),
    ];
    members.extend(copied(&["discard"]));
    ConfigNode::object(at, members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_end_in_a_letter() {
        for (device, prefix, expected) in [
            ("/dev/dasda", "/dev/dasd", true),
            ("/host/dev/dasdz", "/dev/dasd", true),
            ("/dev/dasda1", "/dev/dasd", false),
            ("/dev/dasd", "/dev/dasd", false),
            ("/dev/sdA", "/dev/sd", false),
            ("", "/dev/sd", false),
        ] {
            assert_eq!(is_disk(device, prefix), expected, "{device}");
        }
    }
}
