//! Ignition's rules for merging configurations.
//!
//! Objects merge member by member, scalars are the child's, lists merge by key. Works on JSON, so that unknown
//! members follow the same rules.
//! Source: coreos/ignition, config/merge/merge.go.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::{Error, IgnitionConfig};

/// Members that identify an item, by the name of its list. Lists that are not here hold scalars, which are their
/// own keys.
const KEYS: &[(&str, &str)] = &[
    ("merge", "source"),
    ("certificateAuthorities", "source"),
    ("httpHeaders", "name"),
    ("users", "name"),
    ("groups", "name"),
    ("units", "name"),
    ("dropins", "name"),
    ("directories", "path"),
    ("files", "path"),
    ("links", "path"),
    ("disks", "device"),
    ("filesystems", "device"),
    ("luks", "name"),
    ("raid", "name"),
    ("tang", "url"),
];

/// Lists that keep repeated items: the child's come after the parent's.
const APPENDED: &[&str] = &["append", "options"];

/// Lists that share one set of keys: an item of the child removes one of the same key from the other lists.
const SHARED: &[&[&str]] = &[
    &["directories", "files", "links"],
    &["shouldExist", "shouldNotExist"],
];

/// Merges `child` over `parent`: the child wins. The result has the higher version.
///
/// Errors: `Invalid` when the result is not valid although both were: a file whose parent says `append` and
/// whose child says `overwrite`, for example.
pub fn merge(parent: &IgnitionConfig, child: &IgnitionConfig) -> Result<IgnitionConfig, Error> {
    let version = parent.ignition.version.max(child.ignition.version);
    let merged = merge_objects(&members(parent), &members(child));
    let mut config = IgnitionConfig::from_value(Value::Object(merged))?;
    config.ignition.version = version;
    config.validate()?;
    Ok(config)
}

fn members(config: &IgnitionConfig) -> Map<String, Value> {
    match serde_json::to_value(config) {
        Ok(Value::Object(members)) => members,
        _ => unreachable!("a configuration is an object with string keys"),
    }
}

fn merge_objects(parent: &Map<String, Value>, child: &Map<String, Value>) -> Map<String, Value> {
    let mut result = Map::new();
    for (name, value) in parent {
        let merged = match (value, child.get(name)) {
            (Value::Array(items), over) => {
                let over = over
                    .and_then(Value::as_array)
                    .map_or(&[][..], Vec::as_slice);
                Value::Array(merge_lists(name, items, over, child))
            }
            (Value::Object(members), Some(Value::Object(over))) => {
                Value::Object(merge_objects(members, over))
            }
            (value, None | Some(Value::Null)) => value.clone(),
            (_, Some(over)) => over.clone(),
        };
        result.insert(name.clone(), merged);
    }
    for (name, value) in child {
        if !parent.contains_key(name) {
            result.insert(name.clone(), value.clone());
        }
    }
    result
}

fn merge_lists(
    name: &str,
    parent: &[Value],
    child: &[Value],
    siblings: &Map<String, Value>,
) -> Vec<Value> {
    if APPENDED.contains(&name) {
        return parent.iter().chain(child).cloned().collect();
    }
    let moved = keys_in_other_lists(name, siblings);
    let mut result = Vec::new();
    for item in parent {
        let key = key_of(name, item);
        // A key that comes twice in the child counts with its last item, as in Ignition.
        let over = child.iter().rfind(|over| key_of(name, over) == key);
        match (item, over) {
            (_, None) if moved.contains(&key) => {}
            (_, None) => result.push(item.clone()),
            (Value::Object(_), Some(Value::Object(over)))
                if name == "httpHeaders" && !over.contains_key("value") => {}
            (Value::Object(item), Some(Value::Object(over))) => {
                result.push(Value::Object(merge_objects(item, over)));
            }
            (_, Some(over)) => result.push(over.clone()),
        }
    }
    let known: HashSet<String> = parent.iter().map(|item| key_of(name, item)).collect();
    let new = child
        .iter()
        .filter(|item| !known.contains(&key_of(name, item)));
    result.extend(new.cloned());
    result
}

/// Keys of the child's items in the lists that share their keys with `name`.
fn keys_in_other_lists(name: &str, child: &Map<String, Value>) -> HashSet<String> {
    let lists = SHARED.iter().find(|lists| lists.contains(&name));
    lists
        .into_iter()
        .flat_map(|lists| lists.iter())
        .filter(|list| **list != name)
        .flat_map(|list| {
            let items = child.get(*list).and_then(Value::as_array);
            items.into_iter().flatten().map(|item| key_of(list, item))
        })
        .collect()
}

fn key_of(list: &str, item: &Value) -> String {
    if list == "partitions" {
        return partition_key(item);
    }
    let Some(member) = KEYS.iter().find(|(name, _)| *name == list) else {
        return item.to_string();
    };
    match (item, item.get(member.1)) {
        (Value::Object(_), Some(Value::String(key))) => key.clone(),
        (Value::Object(_), _) => String::new(),
        // `groups` of a user are plain names.
        (scalar, _) => scalar.to_string(),
    }
}

fn partition_key(partition: &Value) -> String {
    match (partition.get("number"), partition.get("label")) {
        (Some(number), _) if number.as_i64() != Some(0) => format!("number:{number}"),
        (_, Some(label)) => format!("label:{label}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(parent: Value, child: Value) -> Value {
        let read = |mut value: Value| {
            value["ignition"]["version"] = json!("3.1.0");
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
    fn unknown_members_merge_as_objects() {
        let result = merged(
            json!({"storage": {"disks": [{"device": "/dev/a", "wipeTable": true}]}, "kernelArguments": {"shouldExist": ["a", "b"]}}),
            json!({"storage": {"disks": [{"device": "/dev/a", "x": 1}]}, "kernelArguments": {"shouldNotExist": ["a"]}}),
        );
        assert_eq!(
            result["storage"]["disks"],
            json!([{"device": "/dev/a", "wipeTable": true, "x": 1}])
        );
        assert_eq!(
            result["kernelArguments"],
            json!({"shouldExist": ["b"], "shouldNotExist": ["a"]})
        );
    }

    #[test]
    fn two_valid_ones_can_contradict_each_other() {
        let read = |json: Value| IgnitionConfig::parse(json.to_string().as_bytes()).unwrap();
        let parent = read(
            json!({"ignition": {"version": "3.1.0"}, "storage": {"files": [{"path": "/a", "append": [{"source": "data:,x"}]}]}}),
        );
        let child = read(
            json!({"ignition": {"version": "3.1.0"}, "storage": {"files": [{"path": "/a", "overwrite": true, "contents": {"source": "data:,x"}}]}}),
        );
        assert!(matches!(merge(&parent, &child), Err(Error::Invalid { .. })));
    }
}
