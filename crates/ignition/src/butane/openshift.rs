//! The variant `openshift`: sections that the machine-config operator refuses, and the MachineConfig around the
//! configuration.
//!
//! Source: coreos/butane, config/openshift/v4_8 to v4_22.

use std::collections::HashSet;

use located_yaml::v1_2::{ConfigMember, ConfigNode, NodeValue};

use super::node::{member_mut, set, text};
use super::resource::AutoCompression;
use super::spec::ButaneSpec;
use crate::problem::{ProblemClass, ProblemList};

/// A member that the operator does not apply.
struct Unsupported {
    /// Path in Ignition; lists have all their items checked.
    path: &'static [&'static str],
    /// The first and the last minor version that refuse it.
    versions: (u8, u8),
    reason: &'static str,
}

const ALWAYS: (u8, u8) = (0, u8::MAX);
const USER_FIELDS: &str =
    "users have name and ssh_authorized_keys only, and password_hash since 4.13.0";

const fn user(name: &'static [&'static str]) -> Unsupported {
    Unsupported {
        path: name,
        versions: ALWAYS,
        reason: USER_FIELDS,
    }
}

static UNSUPPORTED: &[Unsupported] = &[
    Unsupported {
        path: &["kernelArguments"],
        versions: (14, u8::MAX),
        reason: "kernel arguments are set by openshift.kernel_arguments",
    },
    Unsupported {
        path: &["passwd", "groups"],
        versions: ALWAYS,
        reason: "groups are not supported",
    },
    user(&["passwd", "users", "gecos"]),
    user(&["passwd", "users", "groups"]),
    user(&["passwd", "users", "homeDir"]),
    user(&["passwd", "users", "noCreateHome"]),
    user(&["passwd", "users", "noLogInit"]),
    user(&["passwd", "users", "noUserGroup"]),
    Unsupported {
        path: &["passwd", "users", "passwordHash"],
        versions: (0, 12),
        reason: USER_FIELDS,
    },
    user(&["passwd", "users", "primaryGroup"]),
    user(&["passwd", "users", "shell"]),
    user(&["passwd", "users", "shouldExist"]),
    user(&["passwd", "users", "system"]),
    user(&["passwd", "users", "uid"]),
    Unsupported {
        path: &["storage", "directories"],
        versions: ALWAYS,
        reason: "directories are not supported",
    },
    Unsupported {
        path: &["storage", "files", "append"],
        versions: ALWAYS,
        reason: "appending to files is not supported",
    },
    Unsupported {
        path: &["storage", "files", "contents", "compression"],
        versions: (0, 9),
        reason: "compressed files are not supported",
    },
    Unsupported {
        path: &["storage", "files", "contents", "httpHeaders"],
        versions: ALWAYS,
        reason: "headers of requests are not supported",
    },
    Unsupported {
        path: &["storage", "links"],
        versions: ALWAYS,
        reason: "links are not supported",
    },
];

/// Cipher of encrypted volumes under FIPS 140-2, which has no XTS mode.
const FIPS_OPTIONS: [&str; 2] = ["--cipher", "aes-cbc-essiv:sha256"];
/// The last minor version that sets it.
const FIPS_OPTIONS_UNTIL: u8 = 19;

/// A value of a configuration with its path.
struct SectionValue<'n> {
    path: String,
    node: &'n ConfigNode,
}

/// All values at a path, through every list on the way.
fn section_values<'n>(root: &'n ConfigNode, path: &[&str]) -> Vec<SectionValue<'n>> {
    let mut found = vec![SectionValue {
        path: String::new(),
        node: root,
    }];
    for name in path {
        let mut next = Vec::new();
        for SectionValue { path, node } in found {
            let separator = if path.is_empty() { "" } else { "." };
            let mut step = |above: String, node: &'n ConfigNode| {
                if let Some(node) = node.get(name) {
                    let path = format!("{above}{separator}{name}");
                    next.push(SectionValue { path, node });
                }
            };
            match &node.value {
                NodeValue::List(items) => {
                    for (index, item) in items.iter().enumerate() {
                        step(format!("{path}[{index}]"), item);
                    }
                }
                _ => step(path, node),
            }
        }
        found = next;
    }
    found
}

/// Reports members that a MachineConfig must not have.
pub(super) fn check_sections(config: &ConfigNode, minor: u8, problems: &mut ProblemList) {
    for row in UNSUPPORTED {
        if !(row.versions.0..=row.versions.1).contains(&minor) {
            continue;
        }
        for SectionValue { path, node } in section_values(config, row.path) {
            // Short forms write an empty compression, which does nothing.
            if node.as_text() != Some("") || !row.path.ends_with(&["compression"]) {
                problems.add(ProblemClass::Refused, node.at, path, row.reason);
            }
        }
    }
}

/// Reports values that the operator, or the system of its hosts, does not support; also in raw configurations.
pub(super) fn check_values(config: &ConfigNode, minor: u8, problems: &mut ProblemList) {
    let mut refuse = |value: SectionValue<'_>, reason: String| {
        problems.add(ProblemClass::Refused, value.node.at, value.path, reason);
    };
    for value in section_values(config, &["storage", "filesystems", "format"]) {
        let format = value.node.as_text().unwrap_or_default();
        if format == "btrfs" || format == "none" && minor >= 14 {
            let reason = format!("file systems of format {format:?} are not supported");
            refuse(value, reason);
        }
    }
    for value in section_values(config, &["storage", "files", "contents", "source"]) {
        let scheme = value.node.as_text().and_then(|url| url.get(..5));
        if !scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:")) {
            refuse(
                value,
                "files need their contents inline or local: sources are not fetched".to_owned(),
            );
        }
    }
    for value in section_values(config, &["storage", "files", "mode"]) {
        let mode = value.node.as_integer().unwrap_or_default();
        if mode & !0o777 != 0 && minor >= 10 {
            refuse(
                value,
                "set-user-id, set-group-id and sticky bits are not supported".to_owned(),
            );
        }
    }
    for value in section_values(config, &["passwd", "users", "name"]) {
        if value.node.as_text() != Some("core") {
            refuse(value, "the only user is \"core\"".to_owned());
        }
    }
}

/// Adds the cipher of FIPS to encrypted volumes that name none. `openshift` is that of the document.
pub(super) fn add_fips_options(config: &mut ConfigNode, openshift: &ConfigNode, minor: u8) {
    let Some(fips) = openshift
        .get("fips")
        .filter(|fips| fips.as_bool() == Some(true))
    else {
        return;
    };
    let has_volumes = config.find(&["storage", "luks"]).is_some();
    if minor > FIPS_OPTIONS_UNTIL || !has_volumes {
        return;
    }
    let storage = member_mut(config, "storage", fips.at);
    let volumes = member_mut(storage, "luks", fips.at);
    let NodeValue::List(volumes) = &mut volumes.value else {
        return;
    };
    for volume in volumes {
        let options = volume.get("options");
        let at = options.map_or(fips.at, |options| options.at);
        let mut options = options.map_or(&[][..], ConfigNode::items).to_vec();
        let names_cipher = options
            .iter()
            .filter_map(ConfigNode::as_text)
            .any(|option| {
                option == "-c" || option == FIPS_OPTIONS[0] || option.starts_with("--cipher=")
            });
        if !names_cipher {
            options.extend(FIPS_OPTIONS.map(|option| ConfigNode::text(fips.at, option)));
            set(
                volume,
                ConfigMember::new("options", ConfigNode::list(at, options)),
            );
        }
    }
}

/// Members of a MachineConfig besides the configuration, and their keys in the document.
const SPEC_MEMBERS: [(&str, &str); 4] = [
    ("extensions", "extensions"),
    ("fips", "fips"),
    ("kernelArguments", "kernel_arguments"),
    ("kernelType", "kernel_type"),
];

/// The MachineConfig. `root` is the document, which was checked.
pub(super) fn machine_config(root: &ConfigNode, config: ConfigNode) -> ConfigNode {
    let at = root.at;
    let mut metadata = Vec::new();
    if let Some(found) = root.get("metadata") {
        let labels = found
            .get("labels")
            .filter(|labels| !labels.members().is_empty());
        metadata.extend(labels.map(|labels| ConfigMember::new("labels", labels.clone())));
        metadata.extend(
            found
                .get("name")
                .map(|name| ConfigMember::new("name", name.clone())),
        );
    }
    let mut spec = vec![ConfigMember::new("config", config)];
    for (name, key) in SPEC_MEMBERS {
        let value = root.find(&["openshift", key]);
        let is_empty =
            |value: &ConfigNode| matches!(&value.value, NodeValue::List(items) if items.is_empty());
        let value = value.filter(|value| !is_empty(value));
        spec.extend(value.map(|value| ConfigMember::new(name, value.clone())));
    }
    let members = vec![
        text("apiVersion", at, "machineconfiguration.openshift.io/v1"),
        text("kind", at, "MachineConfig"),
        ConfigMember::new("metadata", ConfigNode::object(at, metadata)),
        ConfigMember::new("spec", ConfigNode::object(at, spec)),
    ];
    ConfigNode::object(at, members)
}

/// Reports repeated texts in the lists of a MachineConfig.
pub(super) fn check_lists(root: &ConfigNode, problems: &mut ProblemList) {
    for (_, key) in SPEC_MEMBERS {
        let items = root
            .find(&["openshift", key])
            .map_or(&[][..], ConfigNode::items);
        let mut known = HashSet::new();
        for (index, item) in items.iter().enumerate() {
            if !known.insert(item.as_text()) {
                let path = format!("openshift.{key}[{index}]");
                problems.add(
                    ProblemClass::Refused,
                    item.at,
                    path,
                    "the item appears twice",
                );
            }
        }
    }
}

/// Reports keys of the document that a raw configuration does not carry.
pub(super) fn check_elided(root: &ConfigNode, problems: &mut ProblemList) {
    for (_, key) in SPEC_MEMBERS {
        if let Some(value) = root.find(&["openshift", key]) {
            let path = format!("openshift.{key}");
            let reason = "the key has no effect in a raw configuration";
            problems.add(ProblemClass::Doubtful, value.at, path, reason);
        }
    }
}

/// Whether contents may be compressed: early operators do not unpack them.
pub(super) fn compression(spec: &ButaneSpec) -> AutoCompression {
    if spec.openshift.is_none_or(|minor| minor >= 10) {
        AutoCompression::Allowed
    } else {
        AutoCompression::Off
    }
}

#[cfg(test)]
mod tests {
    use located_yaml::v1_2::from_json;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_unsupported_member_is_found() {
        let config = json!({
            "passwd": {"groups": [{"name": "a"}], "users": [{"name": "core"}, {"name": "core", "uid": 1, "passwordHash": "x"}]},
            "storage": {
                "files": [{"path": "/a", "contents": {"compression": ""}}, {"path": "/b", "contents": {"compression": "gzip"}}],
                "links": [{"path": "/l"}],
            },
        });
        let config = from_json(config.to_string().as_bytes()).unwrap();
        let found = |minor| {
            let mut problems = ProblemList::default();
            check_sections(&config, minor, &mut problems);
            let mut paths: Vec<_> = problems
                .as_slice()
                .iter()
                .map(|problem| problem.path.clone())
                .collect();
            paths.sort();
            paths
        };
        let always = ["passwd.groups", "passwd.users[1].uid", "storage.links"];
        assert_eq!(found(20), always);
        assert_eq!(found(12).len(), 4);
        let oldest = found(9);
        assert!(
            oldest.contains(&"storage.files[1].contents.compression".to_owned()),
            "{oldest:?}"
        );
        assert_eq!(oldest.len(), 5);
    }
}
