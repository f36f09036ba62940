//! Doubts about the partitions of the boot disk.

use located_yaml::v1_2::ConfigNode;

use crate::problem::{ProblemClass, ProblemList};

use super::spec::ButaneSpec;

/// Labels of the partitions that images of the operating system have, with their numbers.
const RESERVED: [(&str, i64); 5] = [
    ("BIOS-BOOT", 1),
    ("PowerPC-PReP-boot", 1),
    ("EFI-SYSTEM", 2),
    ("boot", 3),
    ("root", 4),
];

/// Units: MiB. Less than that fills up with updates.
const MIN_ROOT_MIB: i64 = 8192;

/// Reports doubts about all disks of a configuration.
///
/// Source: coreos/butane, config/fcos/v1_3/translate.go.
pub(super) fn check(config: &ConfigNode, spec: &ButaneSpec, problems: &mut ProblemList) {
    let disks = config.find(&["storage", "disks"]);
    for (index, disk) in disks.map_or(&[][..], ConfigNode::items).iter().enumerate() {
        let path = format!("storage.disks[{index}]");
        let is_wiped = disk.get("wipeTable").and_then(ConfigNode::as_bool) == Some(true);
        let partitions = disk.get("partitions").map_or(&[][..], ConfigNode::items);
        let unplaced = partitions
            .iter()
            .filter(|partition| is_unplaced(partition))
            .count();
        for (index, partition) in partitions.iter().enumerate() {
            let path = format!("{path}.partitions[{index}]");
            let Some(label) = partition.get("label") else {
                continue;
            };
            if label.as_text() == Some("root") && spec.fcos >= 3 {
                let others = unplaced - usize::from(is_unplaced(partition));
                root(partition, others > 0, &path, problems);
            }
            let number = integer(partition, "number");
            let reserved = RESERVED
                .iter()
                .find(|(name, own)| label.as_text() == Some(name) && number != *own);
            if let Some((name, own)) = reserved.filter(|_| !is_wiped) {
                let reason = format!(
                    "partition {name:?} of the boot disk has the number {own}; with another one, a new partition is made"
                );
                let path = format!("{path}.label");
                problems.add(ProblemClass::Doubtful, label.at, path, reason);
            }
        }
    }
}

/// Whether the partition comes wherever there is space.
fn is_unplaced(partition: &ConfigNode) -> bool {
    integer(partition, "startMiB") == 0
}

fn root(root: &ConfigNode, is_followed: bool, path: &str, problems: &mut ProblemList) {
    let size = integer(root, "sizeMiB");
    let (name, reason) = if size == 0 && is_followed {
        let reason = "the root partition takes all space, and another partition without start_mib follows it";
        ("label", reason.to_owned())
    } else if (1..MIN_ROOT_MIB).contains(&size) || size < 0 {
        let reason = format!("the root partition should have at least {MIN_ROOT_MIB} MiB");
        ("sizeMiB", reason)
    } else {
        return;
    };
    let at = root.get(name).map_or(root.at, |node| node.at);
    problems.add(ProblemClass::Doubtful, at, format!("{path}.{name}"), reason);
}

/// The number; 0 without one.
fn integer(partition: &ConfigNode, name: &str) -> i64 {
    let number = partition.get(name).and_then(ConfigNode::as_integer);
    number.unwrap_or_default()
}
