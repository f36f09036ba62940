//! The strict check: members, versions and types, by the table. Gives the tree that Ignition sees.

use located_yaml::Position;
use located_yaml::v1_2::{ConfigMember, ConfigNode, NodeValue};

use crate::config::SpecVersion;
use crate::path::{NodePath, is_same_folded};
use crate::problem::{ProblemClass, ProblemList};
use crate::schema::{CONFIG, MemberSchema, ObjectSchema, ValueKind, butane_name};

/// Checks a document of `version`, and reads it as Ignition does: without null and unknown members, a member that
/// comes twice merged into one, names in their own case.
///
/// Source: Go, `encoding/json` – names match in any case, of several equal names the last counts.
pub(crate) fn shape(
    root: &ConfigNode,
    version: SpecVersion,
    problems: &mut ProblemList,
) -> ConfigNode {
    Shaper { version, problems }.object(root, &CONFIG, &NodePath::Root)
}

struct Shaper<'p> {
    version: SpecVersion,
    problems: &'p mut ProblemList,
}

impl Shaper<'_> {
    fn object(
        &mut self,
        node: &ConfigNode,
        schema: &'static ObjectSchema,
        path: &NodePath<'_>,
    ) -> ConfigNode {
        let NodeValue::Object(members) = &node.value else {
            return self.wrong_type(node, "an object", path);
        };
        let mut known: Vec<ConfigMember> = Vec::new();
        for member in members {
            let Some(row) = self.row(member, schema, path) else {
                continue;
            };
            let path = NodePath::Member(path, row.name);
            let value = self.value(&member.node, row.kind, &path);
            if known.iter().any(|other| other.name == row.name) {
                let reason = "the member appears twice; the last one counts";
                self.problems
                    .add(ProblemClass::Doubtful, member.at, path, reason);
            }
            add(&mut known, row, member.at, value);
        }
        for row in schema.members {
            let is_given = |member: &ConfigMember| {
                member.name == row.name && member.node.as_text() != Some("")
            };
            let is_missing = !known.iter().any(is_given);
            if row.is_required && row.since <= self.version && is_missing {
                let path = NodePath::Member(path, row.name);
                let reason = "the member is missing or empty";
                self.problems
                    .add(ProblemClass::Doubtful, node.at, path, reason);
            }
        }
        ConfigNode::object(node.at, known)
    }

    /// The row of a member of this version.
    fn row(
        &mut self,
        member: &ConfigMember,
        schema: &'static ObjectSchema,
        path: &NodePath<'_>,
    ) -> Option<&'static MemberSchema> {
        let name = member.name.as_str();
        let mut of_version = schema
            .members
            .iter()
            .filter(|row| row.since <= self.version);
        let exact = of_version.clone().find(|row| row.name == name);
        let row = exact.or_else(|| of_version.find(|row| is_same_folded(row.name, name)));
        if exact.is_some() {
            return exact;
        }
        let (class, reason) = match (row, schema.member(name)) {
            (Some(row), _) => {
                let reason = format!("the member is read, though its name is {:?}", row.name);
                (ProblemClass::Doubtful, reason)
            }
            (None, Some(newer)) => {
                let reason = format!(
                    "the member exists since version {}; in a configuration of version {} Ignition ignores it",
                    newer.since, self.version
                );
                (ProblemClass::Ignored, reason)
            }
            (None, None) => {
                let close = schema.members.iter().find(|row| {
                    row.name.eq_ignore_ascii_case(name) || butane_name(row.name) == name
                });
                let reason = match close {
                    Some(row) => format!("unknown member, its name is {:?}", row.name),
                    None => "unknown member".to_owned(),
                };
                (ProblemClass::Ignored, reason)
            }
        };
        let path = NodePath::Member(path, name);
        self.problems.add(class, member.at, path, reason);
        row
    }

    fn value(&mut self, node: &ConfigNode, kind: ValueKind, path: &NodePath<'_>) -> ConfigNode {
        if node.is_null() {
            return node.clone();
        }
        match kind {
            ValueKind::Bool if node.as_bool().is_none() => {
                self.wrong_type(node, "true or false", path)
            }
            ValueKind::Integer if node.as_integer().is_none() => {
                self.wrong_type(node, "a whole number", path)
            }
            ValueKind::Text if node.as_text().is_none() => self.wrong_type(node, "text", path),
            ValueKind::Bool | ValueKind::Integer | ValueKind::Text => node.clone(),
            ValueKind::Object(schema) => self.object(node, schema, path),
            ValueKind::Texts => self.list(node, path, |shaper, item, path| {
                if item.is_null() {
                    return ConfigNode::text(item.at, "");
                }
                shaper.value(item, ValueKind::Text, path)
            }),
            ValueKind::Objects(schema) => self.list(node, path, |shaper, item, path| {
                if item.is_null() {
                    return ConfigNode::object(item.at, Vec::new());
                }
                shaper.object(item, schema, path)
            }),
        }
    }

    fn list(
        &mut self,
        node: &ConfigNode,
        path: &NodePath<'_>,
        item: impl Fn(&mut Self, &ConfigNode, &NodePath<'_>) -> ConfigNode,
    ) -> ConfigNode {
        let NodeValue::List(items) = &node.value else {
            return self.wrong_type(node, "a list", path);
        };
        let items = items.iter().enumerate();
        let items = items
            .map(|(index, node)| item(self, node, &NodePath::Item(path, index)))
            .collect();
        ConfigNode::list(node.at, items)
    }

    fn wrong_type(&mut self, node: &ConfigNode, expected: &str, path: &NodePath<'_>) -> ConfigNode {
        let reason = format!("expected {expected}, found {}", node.type_name());
        self.problems
            .add(ProblemClass::Refused, node.at, path, reason);
        node.clone()
    }
}

fn add(known: &mut Vec<ConfigMember>, row: &'static MemberSchema, at: Position, value: ConfigNode) {
    let index = known.iter().position(|member| member.name == row.name);
    match index {
        None if value.is_null() => {}
        None => known.push(ConfigMember {
            name: row.name.to_owned(),
            at,
            node: value,
        }),
        // Go keeps a value that has no pointer, and forgets one that has.
        Some(_) if value.is_null() && (row.is_required || is_object(row)) => {}
        Some(index) if value.is_null() => {
            known.remove(index);
        }
        Some(index) => overlay(&mut known[index].node, value),
    }
}

fn is_object(row: &MemberSchema) -> bool {
    matches!(row.kind, ValueKind::Object(_))
}

/// Decodes a value into one that is already there, as Go does when a member comes twice.
fn overlay(target: &mut ConfigNode, value: ConfigNode) {
    target.at = value.at;
    match (&mut target.value, value.value) {
        (NodeValue::Object(members), NodeValue::Object(over)) => {
            for member in over {
                match members.iter_mut().find(|other| other.name == member.name) {
                    Some(other) => overlay(&mut other.node, member.node),
                    None => members.push(member),
                }
            }
        }
        (NodeValue::List(items), NodeValue::List(over)) => {
            items.truncate(over.len());
            let known = items.len();
            for (index, item) in over.into_iter().enumerate() {
                if index < known {
                    overlay(&mut items[index], item);
                } else {
                    items.push(item);
                }
            }
        }
        (target, value) => *target = value,
    }
}

#[cfg(test)]
mod tests {
    use located_yaml::v1_2::from_json;
    use serde_json::{Value, json};

    use super::*;

    fn shaped(text: &str, version: SpecVersion) -> (Value, Vec<String>) {
        let mut problems = ProblemList::default();
        let root = shape(&from_json(text.as_bytes()).unwrap(), version, &mut problems);
        let problems = problems.finish();
        let texts = problems.as_slice().iter();
        let texts = texts.map(|problem| format!("{:?} {problem}", problem.class));
        (root.to_json(), texts.collect())
    }

    #[test]
    fn every_mistake_has_its_path_and_position() {
        let text = r#"{
  "ignition": {"version": "3.2.0", "timeout": 3},
  "storage": {"files": [
    {"path": 1, "mode": "0644", "overwrite": 1},
    "x"
  ], "links": {}},
  "passwd": {"users": [{"sshAuthorizedKeys": ["a", 2], "uid": 1.0}]},
  "kernelArguments": {"shouldExist": ["a"]}
}"#;
        let (_, problems) = shaped(text, SpecVersion::V3_2);
        assert_eq!(
            problems,
            [
                "Ignored 2:36: ignition.timeout: unknown member",
                "Refused 4:14: storage.files[0].path: expected text, found a whole number",
                "Refused 4:25: storage.files[0].mode: expected a whole number, found text",
                "Refused 4:46: storage.files[0].overwrite: expected true or false, found a whole number",
                "Refused 5:5: storage.files[1]: expected an object, found text",
                "Refused 6:15: storage.links: expected a list, found an object",
                "Doubtful 7:24: passwd.users[0].name: the member is missing or empty",
                "Refused 7:52: passwd.users[0].sshAuthorizedKeys[1]: expected text, found a whole number",
                "Refused 7:63: passwd.users[0].uid: expected a whole number, found a number that is no 64-bit integer",
                "Ignored 8:3: kernelArguments: the member exists since version 3.3.0; in a configuration of version 3.2.0 Ignition ignores it",
            ]
        );
    }

    #[test]
    fn names_in_another_case_are_read() {
        let text = r#"{"IGNITION":{"Version":"3.1.0"},"ſtorage":{"files":[{"Path":"/a","Mode":1}]},"passwd":{"users":[{"name":"a","ssh_authorized_keys":[]}]}}"#;
        let (root, problems) = shaped(text, SpecVersion::V3_1);
        assert_eq!(
            root["storage"],
            json!({"files": [{"path": "/a", "mode": 1}]})
        );
        assert_eq!(root["ignition"], json!({"version": "3.1.0"}));
        assert_eq!(problems.len(), 6, "{problems:?}");
        assert!(
            problems[5].ends_with("its name is \"sshAuthorizedKeys\""),
            "{problems:?}"
        );
    }

    #[test]
    fn repeated_members_merge_as_in_go() {
        let text = r#"{"ignition":{"version":"3.1.0"},
            "storage":{"files":[{"path":"/a","mode":1},{"path":"/b"}]},
            "storage":{"files":[{"path":"/c"}],"links":null},
            "passwd":{"users":[{"name":"a","name":null,"uid":1,"uid":null,"groups":["x"],"groups":null}]}}"#;
        let (root, problems) = shaped(text, SpecVersion::V3_1);
        assert_eq!(
            root["storage"],
            json!({"files": [{"path": "/c", "mode": 1}]})
        );
        assert_eq!(root["passwd"], json!({"users": [{"name": "a"}]}));
        assert_eq!(problems.len(), 4, "{problems:?}");
    }

    #[test]
    fn null_is_an_empty_item() {
        let text = r#"{"ignition":{"version":"3.1.0"},"storage":{"disks":[null]},"passwd":{"users":[{"name":"a","groups":[null]}]},"systemd":null}"#;
        let (root, _) = shaped(text, SpecVersion::V3_1);
        assert_eq!(root["storage"], json!({"disks": [{}]}));
        assert_eq!(root["passwd"]["users"][0]["groups"], json!([""]));
        assert_eq!(root.get("systemd"), None);
    }
}
