//! File systems.

use std::collections::HashMap;

use located_yaml::v1_2::ConfigNode;

use super::node::CheckedNode;
use super::node::Step::{Item, Member};
use super::storage::path_problem;
use crate::config::SpecVersion;
use crate::problem::{ProblemList, quoted};

/// Formats: first version, bytes that a label may have. Source: the tools' manual pages; `swap` by experiment of
/// Ignition's authors.
const FORMATS: &[(&str, SpecVersion, usize)] = &[
    ("ext4", SpecVersion::V3_0, 16),
    ("btrfs", SpecVersion::V3_0, 256),
    ("xfs", SpecVersion::V3_0, 12),
    ("swap", SpecVersion::V3_0, 15),
    ("vfat", SpecVersion::V3_0, 11),
    ("none", SpecVersion::V3_3, usize::MAX),
];

/// `storage.filesystems[]`
pub(super) fn filesystem(filesystem: &CheckedNode<'_>, problems: &mut ProblemList) {
    if let Some(reason) = filesystem.filled("path").and_then(path_problem) {
        filesystem.refuse(problems, &[Member("path")], reason);
    }
    let device = match filesystem.node.get("device") {
        None => Some(""),
        Some(device) => device.as_text(),
    };
    if let Some(reason) = device.and_then(path_problem) {
        filesystem.refuse(problems, &[Member("device")], reason);
    }
    let at = [Member("format")];
    let Some(format) = filesystem.filled("format") else {
        if filesystem.is_blank("format") && needs_format(filesystem) {
            let reason =
                "path, label, uuid, options, mountOptions and wipeFilesystem need a format";
            filesystem.refuse(problems, &at, reason);
        }
        return;
    };
    let formats = FORMATS
        .iter()
        .filter(|(_, since, _)| *since <= filesystem.version);
    let Some((_, _, label_max)) = formats.clone().find(|(name, _, _)| *name == format) else {
        let names: Vec<_> = formats.map(|(name, _, _)| *name).collect();
        let format = quoted(format);
        let reason = format!(
            "{format} is not supported, expected one of {}",
            names.join(", ")
        );
        return filesystem.refuse(problems, &at, reason);
    };
    let length = filesystem.text("label").map_or(0, str::len);
    if length > *label_max {
        let reason = format!("the label has {length} bytes, {format} takes at most {label_max}");
        filesystem.refuse(problems, &[Member("label")], reason);
    }
}

fn needs_format(filesystem: &CheckedNode<'_>) -> bool {
    ["path", "label", "uuid"]
        .iter()
        .any(|name| filesystem.filled(name).is_some())
        || ["options", "mountOptions"]
            .iter()
            .any(|name| !filesystem.items(name).is_empty())
        || filesystem.is_true("wipeFilesystem")
}

/// File systems on whole disks that lose something.
pub(super) fn wiped_disks(storage: &CheckedNode<'_>, problems: &mut ProblemList) {
    let device = |node: &'_ ConfigNode| {
        node.get("device")
            .and_then(ConfigNode::as_text)
            .map(str::to_owned)
    };
    let disks: HashMap<String, &ConfigNode> = storage
        .items("disks")
        .iter()
        .filter_map(|disk| Some((device(disk)?, disk)))
        .collect();
    for (index, node) in storage.items("filesystems").iter().enumerate() {
        let disk = device(node).and_then(|device| disks.get(&device).copied());
        let Some(disk) = disk else { continue };
        let disk = CheckedNode {
            node: disk,
            ..*storage
        };
        let filesystem = CheckedNode { node, ..*storage };
        let steps = [Member("filesystems"), Item(index), Member("device")];
        if !disk.items("partitions").is_empty() {
            let reason = "the file system overwrites the partitions of this disk";
            storage.doubt(problems, &steps, reason);
        } else if disk.is_true("wipeTable") && !filesystem.is_true("wipeFilesystem") {
            let reason = "the disk has wipeTable: the file system is wiped, although wipeFilesystem does not say so";
            storage.doubt(problems, &steps, reason);
        }
    }
}
