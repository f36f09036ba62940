//! The rules of a Butane document that its keys and types do not express.
//!
//! Source: coreos/butane, validate.go of base/v0_1 to base/v0_7, config/fcos and config/openshift.

use located_yaml::v1_2::ConfigNode;

use super::boot_device;
use super::checked_object::CheckedObject;
use super::embedded;
use super::keys::{self, BOOT_DEVICE, GRUB_USER, KeyKind, OPENSHIFT, TREE, is_same};
use super::mode::is_decimal_mistake;
use super::spec::ButaneSpec;
use crate::path::NodePath;
use crate::problem::{ProblemClass, ProblemList};
use crate::schema::{
    CONFIG, DIRECTORY, DROPIN, FILE, FILESYSTEM, ObjectSchema, REFERENCE, RESOURCE, UNIT, ValueKind,
};

/// The disk of the root file system.
const BOOT_DISK: &str = "/dev/disk/by-id/coreos-boot-disk";
/// Label that selects the pool of a MachineConfig.
const ROLE_LABEL: &str = "machineconfiguration.openshift.io/role";
/// Without it the key of a volume that CEX unlocks is not found.
const CEX_ARGUMENT: &str = "rd.luks.key=/etc/luks/cex.key";

type Rule = fn(&mut CheckedObject<'_, '_>);

static RULES: &[(&ObjectSchema, Rule)] = &[
    (&CONFIG, metadata),
    (&CONFIG, cex_argument),
    (&CONFIG, reuse_by_label),
    (&CONFIG, mount_points),
    (&RESOURCE, one_source),
    (&REFERENCE, one_source),
    (&REFERENCE, embedded::check),
    (&FILE, file_mode),
    (&DIRECTORY, directory_mode),
    (&FILESYSTEM, mount_unit),
    (&TREE, tree),
    (&UNIT, one_text),
    (&DROPIN, one_text),
    (&BOOT_DEVICE, boot_device::check),
    (&GRUB_USER, grub_user),
    (&OPENSHIFT, kernel_type),
];

/// Checks all objects of a document with known keys and right types.
pub(super) fn check(root: &ConfigNode, spec: &'static ButaneSpec, problems: &mut ProblemList) {
    walk(root, &CONFIG, &NodePath::Root, spec, problems);
}

fn walk(
    node: &ConfigNode,
    schema: &'static ObjectSchema,
    path: &NodePath<'_>,
    spec: &'static ButaneSpec,
    problems: &mut ProblemList,
) {
    for (object, rule) in RULES {
        if is_same(object, schema) {
            rule(&mut CheckedObject {
                node,
                path,
                spec,
                problems,
            });
        }
    }
    for member in node.members() {
        let path = NodePath::Member(path, &member.name);
        let kind = keys::key(schema, &member.name, spec).map(|key| key.kind);
        match kind {
            Some(KeyKind::Value(ValueKind::Object(inner))) => {
                walk(&member.node, inner, &path, spec, problems);
            }
            Some(KeyKind::Value(ValueKind::Objects(inner))) => {
                for (index, item) in member.node.items().iter().enumerate() {
                    walk(item, inner, &NodePath::Item(&path, index), spec, problems);
                }
            }
            _ => {}
        }
    }
}

fn one_source(object: &mut CheckedObject<'_, '_>) {
    let present = |name: &&&str| object.node.get(name).is_some();
    let mut sources = ["local", "inline", "source"].iter().filter(present);
    if sources.clone().count() < 2 {
        return;
    }
    let last = match object.spec.fcos {
        0 => "inline",
        _ => sources.next_back().copied().unwrap_or_default(),
    };
    object.refuse(&[last], "only one of inline, local and source is possible");
}

fn one_text(object: &mut CheckedObject<'_, '_>) {
    if object.node.get("contents").is_some() && object.node.get("contents_local").is_some() {
        let reason = "only one of contents and contents_local is possible";
        object.refuse(&["contents_local"], reason);
    }
}

fn file_mode(object: &mut CheckedObject<'_, '_>) {
    mode(object, "mode", false);
}

fn directory_mode(object: &mut CheckedObject<'_, '_>) {
    mode(object, "mode", true);
}

fn mode(object: &mut CheckedObject<'_, '_>, name: &str, is_directory: bool) {
    let mode = object.node.get(name).and_then(ConfigNode::as_integer);
    let Some(mode) = mode else {
        return;
    };
    if is_decimal_mistake(mode, is_directory) {
        let reason =
            format!("{mode} is an odd mode; in octal it is usual, which is written 0{mode}");
        object.doubt(&[name], reason);
    }
}

fn mount_unit(object: &mut CheckedObject<'_, '_>) {
    if !object.is_true(&["with_mount_unit"]) {
        return;
    }
    let has_format = !object.text("format").is_empty();
    let needs_path = match object.spec.fcos {
        0..=3 => true,
        _ => has_format && object.text("format") != "swap",
    };
    if !has_format {
        object.refuse(&["format"], "a mount unit needs the format");
    }
    if needs_path && object.text("path").is_empty() {
        object.refuse(&["path"], "a mount unit needs the path");
    }
}

fn tree(object: &mut CheckedObject<'_, '_>) {
    mode(object, "file_mode", false);
    mode(object, "dir_mode", true);
    if object.text("local").is_empty() {
        object.refuse(&["local"], "the directory of the tree is missing");
    }
}

fn grub_user(object: &mut CheckedObject<'_, '_>) {
    for name in ["name", "password_hash"] {
        if object.text(name).is_empty() {
            object.refuse(&[name], "the value is missing");
        }
    }
}

fn metadata(object: &mut CheckedObject<'_, '_>) {
    if object.spec.openshift.is_none() {
        return;
    }
    let text = |path: &[&str]| object.node.find(path).and_then(ConfigNode::as_text);
    let has_name = text(&["metadata", "name"]).is_some_and(|name| !name.is_empty());
    let has_role = text(&["metadata", "labels", ROLE_LABEL]).is_some_and(|role| !role.is_empty());
    if !has_name {
        object.refuse(&["metadata", "name"], "a MachineConfig needs a name");
    }
    if !has_role {
        let reason = format!("a MachineConfig needs the label {ROLE_LABEL}");
        object.refuse(&["metadata", "labels"], reason);
    }
}

fn kernel_type(object: &mut CheckedObject<'_, '_>) {
    let kernel = object.text("kernel_type");
    if !["", "default", "realtime"].contains(&kernel) {
        let reason = format!("unknown kernel {kernel:?}, expected \"default\" or \"realtime\"");
        object.refuse(&["kernel_type"], reason);
    }
}

fn cex_argument(object: &mut CheckedObject<'_, '_>) {
    if !object.spec.is_openshift_since(19) {
        return;
    }
    let items = |path: &[&str]| object.node.find(path).map_or(&[][..], ConfigNode::items);
    let is_root_volume = |volume: &ConfigNode| {
        volume.get("name").and_then(ConfigNode::as_text) == Some("root")
            && volume
                .find(&["cex", "enabled"])
                .and_then(ConfigNode::as_bool)
                == Some(true)
    };
    let is_used = object.is_true(&["boot_device", "luks", "cex", "enabled"])
        || items(&["storage", "luks"]).iter().any(is_root_volume);
    let arguments = items(&["openshift", "kernel_arguments"]);
    let is_set = arguments
        .iter()
        .any(|item| item.as_text() == Some(CEX_ARGUMENT));
    if is_used && !is_set {
        let reason = format!("CEX on the boot device needs the kernel argument {CEX_ARGUMENT:?}");
        object.refuse(&["openshift", "kernel_arguments"], reason);
    }
}

/// The original checks this in `fcos` alone, not in the variants with the same keys.
fn reuse_by_label(object: &mut CheckedObject<'_, '_>) {
    if object.spec.fcos < 6 || object.spec.openshift.is_some() {
        return;
    }
    let items = |path: &[&str]| object.node.find(path).map_or(&[][..], ConfigNode::items);
    let mirror = items(&["boot_device", "mirror", "devices"]);
    let mut found = Vec::new();
    for (disk_index, disk) in items(&["storage", "disks"]).iter().enumerate() {
        let device = disk
            .get("device")
            .and_then(ConfigNode::as_text)
            .unwrap_or_default();
        let is_wiped = disk.get("wipe_table").and_then(ConfigNode::as_bool) == Some(true);
        let is_mirror = mirror.iter().any(|item| item.as_text() == Some(device));
        if device == BOOT_DISK || is_wiped || is_mirror {
            continue;
        }
        let partitions = disk.get("partitions").map_or(&[][..], ConfigNode::items);
        for (index, partition) in partitions.iter().enumerate() {
            let number = partition.get("number");
            let has_number = number
                .and_then(ConfigNode::as_integer)
                .is_some_and(|number| number != 0);
            if !has_number && partition.get("label").is_some() {
                let at = number.map_or(partition.at, |number| number.at);
                found.push((at, disk_index, index));
            }
        }
    }
    for (at, disk, partition) in found {
        let path = format!("storage.disks[{disk}].partitions[{partition}].number");
        let reason =
            "a partition is not found again by its label: give a number, or set wipe_table";
        object.add(ProblemClass::Doubtful, at, &path, reason.to_owned());
    }
}

fn mount_points(object: &mut CheckedObject<'_, '_>) {
    if object.spec.fcos < 6 || object.spec.openshift.is_some() {
        return;
    }
    let filesystems = object.node.find(&["storage", "filesystems"]);
    let filesystems = filesystems.map_or(&[][..], ConfigNode::items);
    let is_below = |path: &str, top: &str| {
        path.strip_prefix(top)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let mut found = Vec::new();
    for (index, filesystem) in filesystems.iter().enumerate() {
        let has_unit = filesystem
            .get("with_mount_unit")
            .and_then(ConfigNode::as_bool)
            == Some(true);
        let Some(path) = filesystem.get("path").filter(|_| has_unit) else {
            continue;
        };
        let text = path.as_text().unwrap_or_default();
        if !["/etc", "/var"].iter().any(|top| is_below(text, top)) {
            found.push((path.at, index));
        }
    }
    for (at, index) in found {
        let path = format!("storage.filesystems[{index}].path");
        let reason = "a mount unit is possible below /etc and /var only";
        object.add(ProblemClass::Refused, at, &path, reason.to_owned());
    }
}
