//! Disks, partitions, RAID arrays and encrypted volumes.

use std::collections::HashSet;

use located_yaml::v1_2::{ConfigNode, from_json};

use super::node::CheckedNode;
use super::node::Step::{Item, Member};
use super::storage::path_problem;
use crate::config::SpecVersion;
use crate::problem::{ProblemList, quoted};

/// Units: bytes. The name of a partition in its table.
const PARTITION_LABEL_MAX: usize = 36;

/// Units: bytes. The label of an encrypted volume in its header.
const LUKS_LABEL_MAX: usize = 47;

/// Levels of RAID with all their spellings; whether they have spares.
const RAID_LEVELS: &[(&[&str], bool)] = &[
    (&["linear", "raid0", "0", "stripe"], false),
    (&["raid1", "1", "mirror"], true),
    (&["raid4", "4"], true),
    (&["raid5", "5"], true),
    (&["raid6", "6"], true),
    (&["raid10", "10"], true),
];

/// Pins of Clevis that `custom` may name; since 3.6, others too.
const PINS: &[&str] = &["tpm2", "tang", "sss"];

/// `storage.disks[]`
pub(super) fn disk(disk: &CheckedNode<'_>, problems: &mut ProblemList) {
    if disk.is_blank("device") {
        let reason = "the path of a device is needed here";
        return disk.refuse(problems, &[Member("device")], reason);
    }
    device(disk, problems);
    let partitions = disk.items("partitions");
    let mut refuse = |index: usize, reason: String| {
        disk.refuse(problems, &[Member("partitions"), Item(index)], reason);
    };
    let mut labels = HashSet::new();
    for (index, partition) in partitions.iter().enumerate() {
        let label = partition.get("label").and_then(ConfigNode::as_text);
        if let Some(label) = label.filter(|label| !labels.insert(*label)) {
            refuse(
                index,
                format!("label {} is already used on this disk", quoted(label)),
            );
        }
    }
    for (index, other) in overlaps(partitions) {
        refuse(index, format!("overlaps partitions[{other}]"));
    }
    let mixes_next_number = partitions.iter().any(|partition| number(partition) == 0)
        && partitions.iter().any(should_not_exist);
    if mixes_next_number {
        let reason =
            "a partition that should not exist excludes partitions without a number on its disk";
        disk.refuse(problems, &[Member("partitions")], reason);
    }
}

fn device(node: &CheckedNode<'_>, problems: &mut ProblemList) {
    if let Some(reason) = node.text("device").and_then(path_problem) {
        node.refuse(problems, &[Member("device")], reason);
    }
}

fn number(partition: &ConfigNode) -> i64 {
    let number = partition.get("number").and_then(ConfigNode::as_integer);
    number.unwrap_or(0)
}

fn should_not_exist(partition: &ConfigNode) -> bool {
    partition.get("shouldExist").and_then(ConfigNode::as_bool) == Some(false)
}

/// Partitions that overlap one with a lower start, with that one. Those without start and size have no known
/// extent; a start of 0 is anywhere, a size of 0 counts as one MiB.
fn overlaps(partitions: &[ConfigNode]) -> Vec<(usize, usize)> {
    let extent = |(index, partition): (usize, &ConfigNode)| {
        let start = partition.get("startMiB")?.as_integer()?;
        let size = partition.get("sizeMiB")?.as_integer()?;
        (start != 0).then(|| {
            (
                start,
                start.saturating_add(size.saturating_sub(1).max(0)),
                index,
            )
        })
    };
    let mut extents: Vec<_> = partitions.iter().enumerate().filter_map(extent).collect();
    extents.sort_unstable();
    let mut found = Vec::new();
    let mut last: Option<(i64, usize)> = None;
    for (start, end, index) in extents {
        match last {
            Some((last_end, other)) if start <= last_end => {
                found.push((index, other));
                last = Some((
                    last_end.max(end),
                    if end > last_end { index } else { other },
                ));
            }
            _ => last = Some((end, index)),
        }
    }
    found
}

/// `storage.disks[].partitions[]`
pub(super) fn partition(partition: &CheckedNode<'_>, problems: &mut ProblemList) {
    let has_others = ["label", "startMiB", "sizeMiB"]
        .iter()
        .any(|name| partition.has(name))
        || ["typeGuid", "guid"]
            .iter()
            .any(|name| partition.filled(name).is_some());
    if should_not_exist(partition.node) && has_others {
        let reason = "a partition that should not exist has a number only";
        partition.refuse(problems, &[], reason);
    }
    if number(partition.node) == 0 && !partition.has("label") {
        let reason = "a partition needs a number from 1 or a label";
        partition.refuse(problems, &[], reason);
    }
    if let Some(label) = partition.text("label") {
        let at = [Member("label")];
        if label.len() > PARTITION_LABEL_MAX {
            let length = label.len();
            let reason = format!("the label has {length} bytes, at most {PARTITION_LABEL_MAX} fit");
            partition.refuse(problems, &at, reason);
        } else if label.contains(':') {
            partition.refuse(problems, &at, "a label of a partition has no colon");
        }
    }
    for name in ["guid", "typeGuid"] {
        let guid = partition.filled(name);
        if !guid.is_none_or(is_guid) {
            let reason = "expected a GUID, as in 01234567-89AB-CDEF-EDCB-A98765432101";
            partition.refuse(problems, &[Member(name)], reason);
        }
    }
}

fn is_guid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    let is_digit = |byte: u8| byte == b'-' || byte.is_ascii_hexdigit();
    lengths.eq([8, 4, 4, 4, 12]) && text.bytes().all(is_digit)
}

/// `storage.raid[]`
pub(super) fn raid(raid: &CheckedNode<'_>, problems: &mut ProblemList) {
    let at = [Member("level")];
    match raid.filled("level") {
        None if raid.is_blank("level") => {
            raid.refuse(problems, &at, "an array needs a level, as in raid1");
        }
        None => {}
        Some(level) => match RAID_LEVELS.iter().find(|(names, _)| names.contains(&level)) {
            None => {
                let level = quoted(level);
                let reason = format!(
                    "{level} is no level, expected one of linear, raid0, raid1, raid4, raid5, raid6 and raid10"
                );
                raid.refuse(problems, &at, reason);
            }
            Some((_, false)) if raid.integer("spares").is_some_and(|spares| spares != 0) => {
                raid.refuse(problems, &at, "an array of this level has no spares");
            }
            Some(_) => {}
        },
    }
    let is_list = raid
        .node
        .get("devices")
        .is_none_or(|devices| devices.type_name() == "a list");
    if is_list && raid.items("devices").is_empty() {
        raid.refuse(problems, &[Member("devices")], "an array needs devices");
    }
    for (index, device) in raid.items("devices").iter().enumerate() {
        if let Some(reason) = device.as_text().and_then(path_problem) {
            raid.refuse(problems, &[Member("devices"), Item(index)], reason);
        }
    }
}

/// `storage.luks[]`
pub(super) fn luks(luks: &CheckedNode<'_>, problems: &mut ProblemList) {
    if luks.text("name").is_some_and(|name| name.contains('/')) {
        luks.refuse(problems, &[Member("name")], "a name has no slash");
    }
    let length = luks.text("label").map_or(0, str::len);
    if length > LUKS_LABEL_MAX {
        let reason = format!("the label has {length} bytes, at most {LUKS_LABEL_MAX} fit");
        luks.refuse(problems, &[Member("label")], reason);
    }
    if luks.is_blank("device") {
        let reason = "the path of a device is needed here";
        luks.refuse(problems, &[Member("device")], reason);
    } else {
        device(luks, problems);
    }
    let nothing = ConfigNode::object(luks.node.at, Vec::new());
    let node = luks.node.get("clevis").unwrap_or(&nothing);
    let clevis = CheckedNode { node, ..*luks };
    // Before 3.3 even an empty `custom` excludes the others.
    let pin = node.find(&["custom", "pin"]).and_then(ConfigNode::as_text);
    let has_pin = pin.is_some_and(|pin| !pin.is_empty());
    let has_custom = if luks.version < SpecVersion::V3_3 {
        clevis.has("custom")
    } else {
        has_pin
    };
    let has_others = !clevis.items("tang").is_empty()
        || clevis.is_true("tpm2")
        || clevis
            .integer("threshold")
            .is_some_and(|threshold| threshold != 0);
    if has_custom && has_others {
        let reason = "custom excludes tang, tpm2 and threshold";
        luks.refuse(problems, &[Member("clevis")], reason);
    }
    let cex = luks.node.find(&["cex", "enabled"]);
    if cex.and_then(ConfigNode::as_bool) != Some(true) {
        return;
    }
    if has_pin || has_others {
        luks.refuse(problems, &[Member("cex")], "cex excludes clevis");
    }
    let key = luks.node.find(&["keyFile", "source"]);
    if key
        .and_then(ConfigNode::as_text)
        .is_some_and(|key| !key.is_empty())
    {
        luks.refuse(problems, &[Member("cex")], "cex excludes keyFile");
    }
}

/// `storage.luks[].clevis.custom`
pub(super) fn custom_pin(custom: &CheckedNode<'_>, problems: &mut ProblemList) {
    let needs_network = custom.is_true("needsNetwork") && custom.version >= SpecVersion::V3_3;
    if custom.is_blank("pin") && custom.is_blank("config") && !needs_network {
        return;
    }
    let pin = custom.text("pin").unwrap_or_default();
    let is_known = PINS.contains(&pin) || custom.version >= SpecVersion::V3_6;
    if pin.is_empty() || !is_known {
        let reason = format!("expected a pin, as {}", PINS.join(", "));
        custom.refuse(problems, &[Member("pin")], reason);
    }
    if custom.is_blank("config") {
        custom.refuse(
            problems,
            &[Member("config")],
            "a pin needs its configuration",
        );
    }
}

/// `storage.luks[].clevis.tang[]`
pub(super) fn tang(tang: &CheckedNode<'_>, problems: &mut ProblemList) {
    let url = tang.text("url").unwrap_or_default();
    let scheme = super::go_url::GoUrl::parse(url).map(|url| url.scheme);
    if !scheme.is_some_and(|scheme| ["http", "https"].contains(&scheme.as_str())) {
        let reason = "not a URL that starts with http:// or https://";
        tang.refuse(problems, &[Member("url")], reason);
    }
    if tang.is_blank("thumbprint") {
        let reason = "a server needs the thumbprint of its key";
        tang.refuse(problems, &[Member("thumbprint")], reason);
    }
    let advertisement = tang.filled("advertisement");
    if advertisement.is_some_and(|text| from_json(text.as_bytes()).is_err()) {
        tang.refuse(problems, &[Member("advertisement")], "not JSON");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlapping(extents: &[(i64, i64)]) -> Vec<(usize, usize)> {
        let partitions: Vec<_> = extents
            .iter()
            .map(|(start, size)| format!("{{\"startMiB\":{start},\"sizeMiB\":{size}}}"))
            .collect();
        let list = from_json(format!("[{}]", partitions.join(",")).as_bytes()).unwrap();
        overlaps(list.items())
    }

    #[test]
    fn overlaps_are_found() {
        assert_eq!(
            overlapping(&[(1, 10), (11, 10), (0, 500), (30, 0), (31, 1)]),
            []
        );
        assert_eq!(overlapping(&[(11, 10), (1, 11)]), [(0, 1)]);
        assert_eq!(
            overlapping(&[(1, 100), (5, 10), (50, 1), (200, 1)]),
            [(1, 0), (2, 0)]
        );
        assert_eq!(overlapping(&[(5, 0), (5, 0)]), [(1, 0)]);
        assert_eq!(overlapping(&[(1, i64::MAX), (7, i64::MIN)]), [(1, 0)]);
    }

    #[test]
    fn guids_have_five_groups() {
        assert!(is_guid("01234567-89ab-CDEF-EDCB-A98765432101"));
        for text in [
            "01234567",
            "01234567-89ab-CDEF-EDCB-A9876543210",
            "g1234567-89ab-CDEF-EDCB-A98765432101",
        ] {
            assert!(!is_guid(text), "{text}");
        }
    }
}
