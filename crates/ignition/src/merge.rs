//! Ignition's rules for merging configurations, by the table: scalars are the child's, objects merge member by
//! member, lists merge by key.
//! Source: coreos/ignition, config/merge/merge.go.

use std::collections::{HashMap, HashSet};

use located_yaml::v1_2::{ConfigMember, ConfigNode};

use crate::document::ConfigDocument;
use crate::schema::{CONFIG, ListMerging, MemberSchema, ObjectSchema, ValueKind};
use crate::{Error, IgnitionConfig};

/// Merges `child` over `parent`: the child wins. The result has the higher version.
///
/// Errors: `Invalid` when the result is not valid although both were: a file whose parent names its owner by number
/// and whose child names it by name, for example.
pub fn merge(parent: &IgnitionConfig, child: &IgnitionConfig) -> Result<IgnitionConfig, Error> {
    let parent = ConfigDocument::from_config(parent)?;
    let child = ConfigDocument::from_config(child)?;
    let merged = parent.merge(&child);
    merged.problems().accept()?;
    merged.to_config()
}

impl ConfigDocument {
    /// Merges `child` over this one: the child wins. The result has the higher version; it may have problems that
    /// neither had.
    #[must_use]
    pub fn merge(&self, child: &Self) -> Self {
        let version = self.version.max(child.version);
        let (parent, child) = (self.raised(version), child.raised(version));
        let root = merge_objects(&CONFIG, &parent.root, &child.root);
        Self { version, root }
    }
}

fn merge_objects(
    schema: &'static ObjectSchema,
    parent: &ConfigNode,
    child: &ConfigNode,
) -> ConfigNode {
    let mut members = Vec::new();
    for row in schema.members {
        let (old, new) = (parent.get(row.name), child.get(row.name));
        let node = match (old, new, row.kind) {
            (None, None, _) => continue,
            (Some(old), new, ValueKind::Texts | ValueKind::Objects(_)) => {
                let moved = keys_in_other_lists(schema, row, child);
                let items =
                    merge_lists(row, old.items(), new.map_or(&[], ConfigNode::items), &moved);
                ConfigNode::list(new.unwrap_or(old).at, items)
            }
            (Some(old), Some(new), ValueKind::Object(inner)) => merge_objects(inner, old, new),
            (_, Some(new), _) => new.clone(),
            (Some(old), None, _) => old.clone(),
        };
        members.push(ConfigMember::new(row.name, node));
    }
    ConfigNode::object(child.at, members)
}

fn merge_lists(
    row: &MemberSchema,
    parent: &[ConfigNode],
    child: &[ConfigNode],
    moved: &HashSet<String>,
) -> Vec<ConfigNode> {
    if row.merging == ListMerging::Append {
        return parent.iter().chain(child).cloned().collect();
    }
    let key = |item| row.kind.item_key(item);
    let over: HashMap<String, &ConfigNode> = child.iter().map(|item| (key(item), item)).collect();
    let mut result = Vec::with_capacity(parent.len() + child.len());
    for item in parent {
        let key = key(item);
        match (over.get(&key), row.kind) {
            (None, _) if moved.contains(&key) => {}
            (None, _) => result.push(item.clone()),
            (Some(over), _) if removes(row, over) => {}
            (Some(over), ValueKind::Objects(inner)) => {
                result.push(merge_objects(inner, item, over));
            }
            (Some(over), _) => result.push((*over).clone()),
        }
    }
    let known: HashSet<String> = parent.iter().map(key).collect();
    let new = child.iter().filter(|item| !known.contains(&key(item)));
    result.extend(new.cloned());
    result
}

/// A header without a value removes the parent's.
fn removes(row: &MemberSchema, over: &ConfigNode) -> bool {
    row.merging == ListMerging::Headers && over.get("value").is_none()
}

/// Keys of the child's items in the lists that share their keys with this one.
fn keys_in_other_lists(
    schema: &'static ObjectSchema,
    row: &MemberSchema,
    child: &ConfigNode,
) -> HashSet<String> {
    let ListMerging::Shared(_) = row.merging else {
        return HashSet::new();
    };
    let others = schema.members.iter();
    let others = others.filter(|other| other.merging == row.merging && other.name != row.name);
    others
        .flat_map(|other| {
            let items = child.get(other.name).map_or(&[][..], ConfigNode::items);
            items.iter().map(|item| other.kind.item_key(item))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::SpecVersion;

    fn merged(parent: Value, child: Value) -> Value {
        let read = |mut value: Value| {
            value["ignition"]["version"] = json!("3.3.0");
            IgnitionConfig::parse(value.to_string().as_bytes()).unwrap()
        };
        let result = merge(&read(parent), &read(child)).unwrap();
        serde_json::from_slice(&result.to_json()).unwrap()
    }

    fn files(paths: &[(&str, &str)]) -> Value {
        let files: Vec<_> = paths
            .iter()
            .map(|(path, text)| {
                json!({"path": path, "mode": 420, "contents": {"source": format!("data:,{text}")}})
            })
            .collect();
        json!({ "storage": { "files": files } })
    }

    #[test]
    fn files_merge_by_path_in_place() {
        let result = merged(
            files(&[("/a", "1"), ("/b", "2")]),
            json!({"storage": {"files": [
                {"path": "/c", "contents": {"source": "data:,3"}},
                {"path": "/a", "contents": {"source": "data:,new"}},
            ]}}),
        );
        assert_eq!(
            result["storage"]["files"],
            json!([
                {"path": "/a", "mode": 420, "contents": {"source": "data:,new"}},
                {"path": "/b", "mode": 420, "contents": {"source": "data:,2"}},
                {"path": "/c", "contents": {"source": "data:,3"}},
            ])
        );
    }

    #[test]
    fn a_link_takes_the_place_of_a_file() {
        let child = json!({"storage": {"links": [{"path": "/a", "target": "/b"}]}});
        let result = merged(files(&[("/a", "1"), ("/x", "2")]), child);
        let files = result["storage"]["files"].as_array().unwrap();
        assert_eq!(files.len(), 1);
        assert_eq!(result["storage"]["links"][0]["path"], "/a");
    }

    #[test]
    fn units_merge_by_name_and_dropins_too() {
        let result = merged(
            json!({"systemd": {"units": [
                {"name": "a.service", "enabled": true, "contents": "A",
                 "dropins": [{"name": "1.conf", "contents": "p"}]}]}}),
            json!({"systemd": {"units": [
                {"name": "a.service", "enabled": false,
                 "dropins": [{"name": "2.conf", "contents": "q"}, {"name": "1.conf", "contents": "r"}]}]}}),
        );
        assert_eq!(
            result["systemd"]["units"],
            json!([{"name": "a.service", "enabled": false, "contents": "A",
                    "dropins": [{"name": "1.conf", "contents": "r"}, {"name": "2.conf", "contents": "q"}]}])
        );
    }

    #[test]
    fn scalars_in_lists_are_not_repeated() {
        let result = merged(
            json!({"passwd": {"users": [{"name": "core", "groups": ["sudo"], "sshAuthorizedKeys": ["k1", "k2"]}]}}),
            json!({"passwd": {"users": [{"name": "core", "groups": ["sudo", "wheel"], "sshAuthorizedKeys": ["k3", "k2"]}, {"name": "x"}]}}),
        );
        assert_eq!(
            result["passwd"]["users"],
            json!([{"name": "core", "groups": ["sudo", "wheel"], "sshAuthorizedKeys": ["k1", "k2", "k3"]}, {"name": "x"}])
        );
    }

    #[test]
    fn appends_accumulate() {
        let part = |text: &str| json!({"storage": {"files": [{"path": "/a", "append": [{"source": format!("data:,{text}")}]}]}});
        let result = merged(part("x"), part("x"));
        let append = result["storage"]["files"][0]["append"].as_array().unwrap();
        assert_eq!(append.len(), 2);
    }

    #[test]
    fn a_header_without_value_is_removed() {
        let with = |headers: Value| json!({"ignition": {"config": {"merge": [{"source": "http://x/", "httpHeaders": headers}]}}});
        let result = merged(
            with(json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}])),
            with(json!([{"name": "A"}])),
        );
        let merge = &result["ignition"]["config"]["merge"][0];
        assert_eq!(merge["httpHeaders"], json!([{"name": "B", "value": "2"}]));
    }

    #[test]
    fn the_higher_version_stays() {
        let read = |version: &str| {
            let json = json!({"ignition": {"version": version}}).to_string();
            IgnitionConfig::parse(json.as_bytes()).unwrap()
        };
        let (old, new) = (read("3.1.0"), read("3.3.0"));
        assert_eq!(
            merge(&old, &new).unwrap().ignition.version,
            new.ignition.version
        );
        assert_eq!(
            merge(&new, &old).unwrap().ignition.version,
            new.ignition.version
        );
    }

    #[test]
    fn members_without_a_field_merge() {
        let result = merged(
            json!({"storage": {"disks": [{"device": "/dev/a", "wipeTable": true, "partitions": [{"number": 1, "sizeMiB": 5}, {"label": "b"}]}]}, "kernelArguments": {"shouldExist": ["a", "b"]}}),
            json!({"storage": {"disks": [{"device": "/dev/a", "wipeTable": false, "partitions": [{"label": "b", "resize": true}, {"number": 1, "label": "a"}]}]}, "kernelArguments": {"shouldNotExist": ["a"]}}),
        );
        assert_eq!(
            result["storage"]["disks"],
            json!([{"device": "/dev/a", "wipeTable": false, "partitions": [{"label": "a", "number": 1, "sizeMiB": 5}, {"label": "b", "resize": true}]}])
        );
        assert_eq!(
            result["kernelArguments"],
            json!({"shouldExist": ["b"], "shouldNotExist": ["a"]})
        );
    }

    #[test]
    fn two_valid_ones_can_contradict_each_other() {
        let read = |json: Value| IgnitionConfig::parse(json.to_string().as_bytes()).unwrap();
        let file = |owner: Value| {
            read(
                json!({"ignition": {"version": "3.1.0"}, "storage": {"files": [{"path": "/a", "user": owner}]}}),
            )
        };
        let merged = merge(&file(json!({"id": 1})), &file(json!({"name": "core"})));
        let expected = "storage.files[0].user: id and name exclude each other";
        assert_eq!(merged.unwrap_err().to_string(), expected);
    }

    #[test]
    fn lists_with_repeated_items_keep_them() {
        let with = |options: Value| json!({"storage": {"filesystems": [{"device": "/dev/a", "format": "xfs", "options": options, "mountOptions": ["ro"]}]}});
        let result = merged(with(json!(["a", "a"])), with(json!(["a", "b"])));
        let filesystem = &result["storage"]["filesystems"][0];
        assert_eq!(filesystem["options"], json!(["a", "a", "a", "b"]));
        assert_eq!(filesystem["mountOptions"], json!(["ro", "ro"]));
    }

    /// A configuration of few keys, so that they meet. Nothing changes its list and no header is removed: with those,
    /// Ignition's order of merging matters, too.
    fn configs() -> impl Strategy<Value = ConfigDocument> {
        let key = || prop::sample::select(vec!["a", "b", "c", "d"]);
        let texts = || prop::collection::btree_set(key(), 0..3);
        let file =
            (key(), prop::option::of(0..0o777_i64), texts()).prop_map(|(key, mode, append)| {
                let append: Vec<_> = append
                    .iter()
                    .map(|text| json!({"source": format!("data:,{text}")}))
                    .collect();
                json!({"path": format!("/{key}"), "mode": mode, "append": append})
            });
        let unit = (key(), prop::option::of(any::<bool>()), texts()).prop_map(
            |(key, enabled, dropins)| {
                let dropins: Vec<_> = dropins
                    .iter()
                    .map(|name| json!({"name": format!("{name}.conf"), "contents": key}))
                    .collect();
                json!({"name": format!("{key}.service"), "enabled": enabled, "dropins": dropins})
            },
        );
        let user = (key(), texts(), prop::option::of(key())).prop_map(
            |(name, keys, shell)| json!({"name": name, "sshAuthorizedKeys": keys, "shell": shell}),
        );
        let version = prop::sample::select(SpecVersion::ALL.to_vec());
        let list = |items: Vec<Value>, key: &str| {
            let mut seen = HashSet::new();
            let items = items
                .into_iter()
                .filter(|item| seen.insert(item[key].to_string()));
            items.collect::<Value>()
        };
        (
            version,
            prop::collection::vec(file, 0..4),
            prop::collection::vec(unit, 0..4),
            prop::collection::vec(user, 0..4),
        )
            .prop_map(move |(version, files, units, users)| {
                let config = json!({
                    "ignition": {"version": version},
                    "storage": {"files": list(files, "path")},
                    "systemd": {"units": list(units, "name")},
                    "passwd": {"users": list(users, "name")},
                });
                let (document, _) = ConfigDocument::read(config.to_string().as_bytes());
                document.unwrap()
            })
    }

    proptest! {
        #[test]
        fn merging_is_associative(a in configs(), b in configs(), c in configs()) {
            let (left, right) = (a.merge(&b).merge(&c), a.merge(&b.merge(&c)));
            prop_assert_eq!(left.to_json(), right.to_json());
        }

        #[test]
        fn conversion_up_commutes_with_merging(a in configs(), b in configs()) {
            let up = |document: &ConfigDocument| document.convert(SpecVersion::V3_6).unwrap();
            let merged = up(&a.merge(&b));
            prop_assert_eq!(merged.to_json(), up(&up(&a).merge(&up(&b))).to_json());
        }
    }
}
