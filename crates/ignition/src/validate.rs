//! Ignition's validation: every rule of every version, as a table of checks by object.
//!
//! A check reads one object and reports to a list; it returns nothing, so that all problems are found. The verdicts
//! are those of Ignition, neither stricter nor laxer: the corpus compares both.
//! Source: coreos/ignition, config/v3_0/types to config/v3_5/types, config/validate.

mod data_url;
mod disks;
mod filesystems;
mod go_url;
mod node;
mod resources;
mod storage;
mod systemd;
mod unit_syntax;

use std::collections::HashMap;

use located_yaml::v1_2::ConfigNode;

use crate::config::SpecVersion;
use crate::path::NodePath;
use crate::problem::{ProblemList, quoted};
use crate::schema::{self, ItemKey, ListMerging, ObjectSchema, ValueKind};
use node::{CheckedNode, Step};
pub(crate) use storage::SPECIAL_BITS;

/// A check of one object.
type Check = fn(&CheckedNode<'_>, &mut ProblemList);

/// The checks of each object, besides the search for duplicates, which the table of members describes.
static CHECKS: &[(&ObjectSchema, Check)] = &[
    (&schema::CONFIG, systemd::paths),
    (&schema::REFERENCES, resources::merged_configurations),
    (&schema::TLS, resources::certificate_authorities),
    (&schema::REFERENCE, resources::reference),
    (&schema::RESOURCE, resources::resource),
    (&schema::HTTP_HEADER, resources::header),
    (&schema::VERIFICATION, resources::verification),
    (&schema::PROXY, resources::proxy),
    (&schema::STORAGE, storage::symbolic_links),
    (&schema::STORAGE, storage::links),
    (&schema::STORAGE, filesystems::wiped_disks),
    (&schema::DIRECTORY, storage::node),
    (&schema::FILE, storage::node),
    (&schema::FILE, storage::file),
    (&schema::LINK, storage::path),
    (&schema::OWNER, storage::owner),
    (&schema::DISK, disks::disk),
    (&schema::PARTITION, disks::partition),
    (&schema::RAID, disks::raid),
    (&schema::FILESYSTEM, filesystems::filesystem),
    (&schema::LUKS, disks::luks),
    (&schema::CLEVIS_CUSTOM, disks::custom_pin),
    (&schema::TANG, disks::tang),
    (&schema::SYSTEMD, systemd::instances),
    (&schema::UNIT, systemd::unit),
    (&schema::DROPIN, systemd::dropin),
];

/// Reports the problems of a tree that has the shape of the table.
pub(crate) fn validate(root: &ConfigNode, version: SpecVersion, problems: &mut ProblemList) {
    let root = CheckedNode {
        node: root,
        path: &NodePath::Root,
        version,
    };
    object(&root, &schema::CONFIG, problems);
}

/// Checks an object, and those below it.
fn object(checked: &CheckedNode<'_>, schema: &'static ObjectSchema, problems: &mut ProblemList) {
    for (of, check) in CHECKS {
        if std::ptr::eq(*of, schema) {
            check(checked, problems);
        }
    }
    duplicates(checked, schema, problems);
    for row in schema.members {
        let Some(node) = checked.node.get(row.name) else {
            continue;
        };
        let path = NodePath::Member(checked.path, row.name);
        let visit = |node, path: &NodePath<'_>, inner, problems: &mut ProblemList| {
            let version = checked.version;
            let inner_node = CheckedNode {
                node,
                path,
                version,
            };
            object(&inner_node, inner, problems);
        };
        match row.kind {
            ValueKind::Object(inner) => visit(node, &path, inner, problems),
            ValueKind::Objects(inner) => {
                for (index, item) in node.items().iter().enumerate() {
                    visit(item, &NodePath::Item(&path, index), inner, problems);
                }
            }
            _ => {}
        }
    }
}

/// Items of the same key within one list, or within lists that share their keys.
fn duplicates(
    checked: &CheckedNode<'_>,
    schema: &'static ObjectSchema,
    problems: &mut ProblemList,
) {
    let mut first: HashMap<(&str, String), (&str, usize)> = HashMap::new();
    for row in schema.members {
        let group = match row.merging {
            ListMerging::Append => continue,
            ListMerging::Shared(group) => group,
            ListMerging::ByKey | ListMerging::Headers => row.name,
        };
        for (index, item) in checked.items(row.name).iter().enumerate() {
            let key = row.kind.item_key(item);
            let shown = shown(row.kind, &key);
            let place = (row.name, index);
            if let Some((name, index)) = first.insert((group, key), place) {
                let above = NodePath::Member(checked.path, name);
                let first = NodePath::Item(&above, index);
                let reason = format!("{shown} is already used at {first}");
                let steps = [Step::Member(row.name), Step::Item(place.1)];
                checked.refuse(problems, &steps, reason);
            }
        }
    }
}

/// A key for a message. URLs stay out of it: they may have credentials.
fn shown(kind: ValueKind, key: &str) -> String {
    match kind {
        ValueKind::Objects(ObjectSchema { key: of, .. }) => match of {
            ItemKey::Partition => key.replacen(':', " ", 1),
            ItemKey::Member(name @ ("source" | "url")) => format!("the same {name}"),
            _ => quoted(key),
        },
        _ => quoted(key),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::IgnitionConfig;

    fn problem(mut config: Value) -> String {
        config["ignition"]["version"] = json!("3.3.0");
        match IgnitionConfig::parse(config.to_string().as_bytes()) {
            Ok(_) => "none".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn every_refusal_names_its_member() {
        let file = |file: Value| json!({"storage": {"files": [file]}});
        for (config, at) in [
            (file(json!({"path": "etc/x"})), "storage.files[0].path: "),
            (
                file(json!({"path": "/x", "mode": 10000})),
                "storage.files[0].mode: ",
            ),
            (
                file(json!({"path": "/x", "overwrite": true})),
                "storage.files[0].overwrite: ",
            ),
            (
                file(json!({"path": "/x", "contents": {"source": "data:,%"}})),
                "storage.files[0].contents.source: ",
            ),
            (
                file(json!({"path": "/x", "contents": {"source": "ftp://x"}})),
                "storage.files[0].contents.source: ",
            ),
            (
                file(json!({"path": "/x", "contents": {"source": "no url"}})),
                "storage.files[0].contents.source: ",
            ),
            (
                file(json!({"path": "/x", "contents": {"compression": "xz"}})),
                "storage.files[0].contents.compression: ",
            ),
            (
                file(json!({"path": "/x", "contents": {"verification": {"hash": "sha512-12"}}})),
                "storage.files[0].contents.verification.hash: ",
            ),
            (
                json!({"storage": {"files": [{"path": "/x"}], "directories": [{"path": "/x"}]}}),
                "storage.files[0]: \"/x\" is already used at storage.directories[0]",
            ),
            (
                json!({"storage": {"links": [{"path": "/x"}]}}),
                "storage.links[0].target: ",
            ),
            (
                json!({"systemd": {"units": [{"name": "agent"}]}}),
                "systemd.units[0].name: ",
            ),
            (
                json!({"systemd": {"units": [{"name": "a.service"}, {"name": "a.service"}]}}),
                "systemd.units[1]: ",
            ),
            (
                json!({"systemd": {"units": [{"name": "a.service", "dropins": [{"name": "x"}]}]}}),
                "systemd.units[0].dropins[0].name: ",
            ),
            (
                json!({"ignition": {"proxy": {"httpProxy": "proxy:3128"}}}),
                "ignition.proxy.httpProxy: ",
            ),
            (
                json!({"ignition": {"config": {"merge": [{}]}}}),
                "ignition.config.merge[0].source: ",
            ),
        ] {
            let text = problem(config.clone());
            assert!(text.starts_with(at), "{config}: {text}");
        }
    }

    #[test]
    fn sound_ones_pass() {
        for config in [
            json!({}),
            json!({"storage": {"files": [{"path": "/x", "mode": 4095, "contents": {"source": "https://h/x", "compression": "gzip", "verification": {"hash": format!("sha256-{}", "a".repeat(64))}}}]}}),
            json!({"ignition": {"config": {"replace": {"source": "data:,%7B%7D"}}, "proxy": {"httpsProxy": "http://p:1"}}}),
            json!({"systemd": {"units": [{"name": "getty@tty1.service", "enabled": true}]}}),
            json!({"storage": {"files": [{"path": "/x", "mode": null, "contents": null}]}}),
        ] {
            assert_eq!(problem(config), "none");
        }
    }
}
