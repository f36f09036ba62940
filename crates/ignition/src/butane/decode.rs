//! The keys and types of a Butane document. Gives the tree that the translation sees: known keys without nulls,
//! values of their types.

use located_yaml::v1_2::{ConfigMember, ConfigNode, NodeValue, ScalarKind};

use super::keys::{self, KeyKind, is_optional_record};
use super::spec::ButaneSpec;
use crate::path::NodePath;
use crate::problem::{ProblemClass, ProblemList};
use crate::schema::{CONFIG, ObjectSchema, ValueKind};

/// Words for booleans besides those of YAML 1.2. Source: go-yaml v3, `decode.go`.
const YES: [&str; 8] = ["y", "Y", "yes", "Yes", "YES", "on", "On", "ON"];
const NO: [&str; 8] = ["n", "N", "no", "No", "NO", "off", "Off", "OFF"];

/// Checks a document.
pub(super) fn decode(
    root: &ConfigNode,
    spec: &'static ButaneSpec,
    problems: &mut ProblemList,
) -> ConfigNode {
    let mut decoder = Decoder { spec, problems };
    decoder
        .object(root, &CONFIG, &NodePath::Root)
        .unwrap_or_else(|| ConfigNode::object(root.at, Vec::new()))
}

struct Decoder<'p> {
    spec: &'static ButaneSpec,
    problems: &'p mut ProblemList,
}

impl Decoder<'_> {
    fn object(
        &mut self,
        node: &ConfigNode,
        schema: &'static ObjectSchema,
        path: &NodePath<'_>,
    ) -> Option<ConfigNode> {
        let NodeValue::Object(members) = &node.value else {
            return self.wrong_type(node, "an object", path);
        };
        let mut known = Vec::with_capacity(members.len());
        for member in members {
            let path = NodePath::Member(path, &member.name);
            let Some(key) = keys::key(schema, &member.name, self.spec) else {
                let reason = keys::unknown(schema, &member.name, self.spec);
                self.problems
                    .add(ProblemClass::Ignored, member.at, path, reason);
                continue;
            };
            if member.node.is_null() && is_optional_record(schema, &member.name, self.spec) {
                continue;
            }
            if let Some(value) = self.value(&member.node, key.kind, &path) {
                known.push(ConfigMember {
                    name: member.name.clone(),
                    at: member.at,
                    node: value,
                });
            }
        }
        Some(ConfigNode::object(node.at, known))
    }

    /// The value; none of null, and of another type.
    fn value(
        &mut self,
        node: &ConfigNode,
        kind: KeyKind,
        path: &NodePath<'_>,
    ) -> Option<ConfigNode> {
        if node.is_null() {
            if let KeyKind::Value(ValueKind::Object(_)) = kind {
                let reason = "the object is empty: remove the key, or write {}";
                self.problems
                    .add(ProblemClass::Doubtful, node.at, path, reason);
            }
            return None;
        }
        match kind {
            KeyKind::Labels => self.labels(node, path),
            KeyKind::Value(ValueKind::Bool) => match boolean(node) {
                Some(value) => Some(ConfigNode::bool(node.at, value)),
                None => self.wrong_type(node, "true or false", path),
            },
            KeyKind::Value(ValueKind::Integer) => match integer(node) {
                Some(value) => Some(ConfigNode::integer(node.at, value)),
                None => self.wrong_type(node, "a whole number", path),
            },
            KeyKind::Value(ValueKind::Text) => self.text(node, path),
            KeyKind::Value(ValueKind::Object(schema)) => self.object(node, schema, path),
            KeyKind::Value(kind @ (ValueKind::Texts | ValueKind::Objects(_))) => {
                self.list(node, kind, path)
            }
        }
    }

    /// Any scalar is text, as it is written.
    fn text(&mut self, node: &ConfigNode, path: &NodePath<'_>) -> Option<ConfigNode> {
        match &node.value {
            NodeValue::Scalar { text, .. } => Some(ConfigNode::text(node.at, text.as_str())),
            _ => self.wrong_type(node, "text", path),
        }
    }

    fn list(
        &mut self,
        node: &ConfigNode,
        kind: ValueKind,
        path: &NodePath<'_>,
    ) -> Option<ConfigNode> {
        let NodeValue::List(items) = &node.value else {
            return self.wrong_type(node, "a list", path);
        };
        let is_objects = matches!(kind, ValueKind::Objects(_));
        let kept = items.iter().filter(|node| !node.is_null()).count();
        let mut known = Vec::with_capacity(kept);
        for (index, node) in items.iter().enumerate() {
            let path = NodePath::Item(path, index);
            if !node.is_null() {
                known.extend(match kind {
                    ValueKind::Objects(schema) => self.object(node, schema, &path),
                    _ => self.text(node, &path),
                });
            } else if is_objects && index < kept {
                // The original is silent about further ones.
                let reason = "the item is empty, and is left out";
                self.problems
                    .add(ProblemClass::Doubtful, node.at, path, reason);
            }
        }
        Some(ConfigNode::list(node.at, known))
    }

    fn labels(&mut self, node: &ConfigNode, path: &NodePath<'_>) -> Option<ConfigNode> {
        let NodeValue::Object(members) = &node.value else {
            return self.wrong_type(node, "an object", path);
        };
        let mut labels = Vec::with_capacity(members.len());
        for member in members {
            let path = NodePath::Member(path, &member.name);
            let value = if member.node.is_null() {
                Some(ConfigNode::text(member.node.at, ""))
            } else {
                self.text(&member.node, &path)
            };
            if let Some(value) = value {
                labels.push(ConfigMember {
                    name: member.name.clone(),
                    at: member.at,
                    node: value,
                });
            }
        }
        Some(ConfigNode::object(node.at, labels))
    }

    fn wrong_type(
        &mut self,
        node: &ConfigNode,
        expected: &str,
        path: &NodePath<'_>,
    ) -> Option<ConfigNode> {
        let mut reason = format!("expected {expected}, found {}", node.type_name());
        if expected == "a whole number" && node.as_text().is_some() {
            reason.push_str("; write the number without quotes");
        }
        self.problems
            .add(ProblemClass::Refused, node.at, path, reason);
        None
    }
}

fn boolean(node: &ConfigNode) -> Option<bool> {
    let word = |text: &str| YES.contains(&text) || NO.contains(&text);
    node.as_bool().or_else(|| {
        let text = node.as_text().filter(|text| word(text))?;
        Some(YES.contains(&text))
    })
}

/// A number with a fraction is cut, as the original does.
fn integer(node: &ConfigNode) -> Option<i64> {
    match node.value {
        NodeValue::Scalar {
            kind: ScalarKind::Integer(value),
            ..
        } => Some(value),
        NodeValue::Scalar {
            kind: ScalarKind::Float(value),
            ..
        } => truncated(value),
        _ => None,
    }
}

fn truncated(value: f64) -> Option<i64> {
    /// 2^63, above which a float is no i64.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    (-LIMIT..LIMIT).contains(&value).then_some(value as i64)
}

#[cfg(test)]
mod tests {
    use located_yaml::v1_2::from_yaml;
    use serde_json::{Value, json};

    use super::*;

    fn decoded(body: &str) -> (Value, Vec<String>) {
        let spec = ButaneSpec::find("openshift", "4.14.0").unwrap();
        let mut problems = ProblemList::default();
        let root = decode(&from_yaml(body).unwrap(), spec, &mut problems);
        let problems = problems.finish();
        let problems = problems.as_slice().iter();
        (root.to_json(), problems.map(ToString::to_string).collect())
    }

    #[test]
    fn values_take_their_types() {
        let (value, problems) = decoded(
            "passwd:\n  users:\n    - name: 12\n      uid: 1500.9\n      system: yes\n    -\nmetadata:\n  labels: {a: 1, b: ~}\nopenshift:\n  fips: \"off\"\n  extensions: [~, x, 1.50]\n",
        );
        assert_eq!(problems, [""; 0]);
        let users = json!([{"name": "12", "uid": 1500, "system": true}]);
        assert_eq!(value["passwd"]["users"], users);
        assert_eq!(value["metadata"]["labels"], json!({"a": "1", "b": ""}));
        let openshift = json!({"fips": false, "extensions": ["x", "1.50"]});
        assert_eq!(value["openshift"], openshift);
    }

    #[test]
    fn every_mistake_has_its_path_and_position() {
        let (_, problems) = decoded(
            "storage:\n  files:\n    - path: [a]\n      mode: \"0644\"\n      overwrite: 1\n      contents: x\n      tree: x\n  links: {}\npasswd: ~\n",
        );
        assert_eq!(
            problems,
            [
                "3:13: storage.files[0].path: expected text, found a list",
                "4:13: storage.files[0].mode: expected a whole number, found text; write the number without quotes",
                "5:18: storage.files[0].overwrite: expected true or false, found a whole number",
                "6:17: storage.files[0].contents: expected an object, found text",
                "7:7: storage.files[0].tree: unknown key, and is ignored",
                "8:10: storage.links: expected a list, found an object",
                "9:9: passwd: the object is empty: remove the key, or write {}",
            ]
        );
    }

    #[test]
    fn numbers_without_a_place_are_refused() {
        for (text, expected) in [
            ("1e30", None),
            ("-1e30", None),
            (".nan", None),
            ("1e3", Some(1000)),
            ("-1.5", Some(-1)),
            ("99999999999999999999", None),
        ] {
            assert_eq!(integer(&from_yaml(text).unwrap()), expected, "{text}");
        }
    }
}
