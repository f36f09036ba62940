//! Conversion between versions of the specification.

use located_yaml::v1_2::{ConfigNode, NodeValue};

use crate::config::SpecVersion;
use crate::document::ConfigDocument;
use crate::problem::{ProblemClass, ProblemList};
use crate::shape::shape;
use crate::validate::{SPECIAL_BITS, validate};

/// The first version that applies set-user-id, set-group-id and sticky bits.
/// Source: coreos/ignition, config/v3_6/translate/translate.go.
const SPECIAL_BITS_SINCE: SpecVersion = SpecVersion::V3_6;

impl ConfigDocument {
    /// The configuration in another version, without empty lists and objects.
    ///
    /// Errors: the members that `version` does not have, and the values that it refuses.
    pub fn convert(&self, version: SpecVersion) -> Result<Self, ProblemList> {
        let mut converted = self.raised(version.max(self.version));
        prune(&mut converted.root);
        converted.set_version(version);
        let mut problems = ProblemList::default();
        shape(&converted.root, version, &mut problems);
        validate(&converted.root, version, &mut problems);
        if version < SPECIAL_BITS_SINCE && self.version >= SPECIAL_BITS_SINCE {
            for_each_mode(&mut converted.root, |path, mode, bits| {
                if bits & SPECIAL_BITS != 0 {
                    let reason = format!(
                        "set-user-id, set-group-id and sticky bits need version {SPECIAL_BITS_SINCE}"
                    );
                    problems.add(ProblemClass::Refused, mode.at, path, reason);
                }
            });
        }
        let problems = problems.finish();
        match problems.first(&[ProblemClass::Refused, ProblemClass::Ignored]) {
            Some(_) => Err(problems),
            None => Ok(converted),
        }
    }

    /// The configuration in the lowest version that carries it.
    ///
    /// Errors: the problems in its own version, when no version takes it.
    pub fn lowest(&self) -> Result<Self, ProblemList> {
        let mut lower = SpecVersion::ALL
            .into_iter()
            .filter_map(|version| self.convert(version).ok());
        match lower.next() {
            Some(lowest) => Ok(lowest),
            None => self.convert(self.version),
        }
    }

    /// The same in a version that is not lower: bits of modes that its own version ignores are cleared when the
    /// other applies them.
    pub(crate) fn raised(&self, version: SpecVersion) -> Self {
        let mut raised = self.clone();
        if self.version < SPECIAL_BITS_SINCE && version >= SPECIAL_BITS_SINCE {
            for_each_mode(&mut raised.root, |_, mode, bits| {
                *mode = ConfigNode::integer(mode.at, bits & !SPECIAL_BITS);
            });
        }
        raised.set_version(version);
        raised
    }
}

/// Visits the modes of files and directories, with their paths.
fn for_each_mode(root: &mut ConfigNode, mut visit: impl FnMut(String, &mut ConfigNode, i64)) {
    for list in ["files", "directories"] {
        let nodes = root
            .get_mut("storage")
            .and_then(|storage| storage.get_mut(list));
        let Some(NodeValue::List(nodes)) = nodes.map(|nodes| &mut nodes.value) else {
            continue;
        };
        for (index, node) in nodes.iter_mut().enumerate() {
            if let Some(mode) = node.get_mut("mode")
                && let Some(bits) = mode.as_integer()
            {
                visit(format!("storage.{list}[{index}].mode"), mode, bits);
            }
        }
    }
}

/// Removes members that are empty lists or objects; they mean the same as absent ones.
fn prune(node: &mut ConfigNode) {
    match &mut node.value {
        NodeValue::Scalar { .. } => {}
        NodeValue::List(items) => items.iter_mut().for_each(prune),
        NodeValue::Object(members) => {
            for member in members.iter_mut() {
                prune(&mut member.node);
            }
            members.retain(|member| match &member.node.value {
                NodeValue::Scalar { .. } => true,
                NodeValue::List(items) => !items.is_empty(),
                NodeValue::Object(members) => !members.is_empty(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn document(version: &str, mut config: Value) -> ConfigDocument {
        config["ignition"]["version"] = json!(version);
        let (document, problems) = ConfigDocument::read(config.to_string().as_bytes());
        assert_eq!(
            problems.first(&[ProblemClass::Refused, ProblemClass::Ignored]),
            None
        );
        document.unwrap()
    }

    fn file(file: &Value) -> Value {
        json!({"storage": {"files": [file]}})
    }

    #[test]
    fn the_lowest_version_carries_the_content() {
        let hash = |name: &str, digits: usize| json!({"source": "http://h/x", "verification": {"hash": format!("{name}-{}", "a".repeat(digits))}});
        for (config, lowest) in [
            (json!({}), "3.0.0"),
            (
                json!({"storage": {"luks": []}, "kernelArguments": {}}),
                "3.0.0",
            ),
            (
                file(&json!({"path": "/a", "contents": hash("sha512", 128)})),
                "3.0.0",
            ),
            (
                file(&json!({"path": "/a", "contents": hash("sha256", 64)})),
                "3.1.0",
            ),
            (json!({"ignition": {"proxy": {"noProxy": ["a"]}}}), "3.1.0"),
            (
                json!({"ignition": {"config": {"merge": [{"source": "http://h", "compression": "gzip"}]}}}),
                "3.1.0",
            ),
            (
                file(&json!({"path": "/a", "contents": {"source": "gs://b/k"}})),
                "3.2.0",
            ),
            (
                json!({"passwd": {"users": [{"name": "a", "shouldExist": false}]}}),
                "3.2.0",
            ),
            (
                json!({"storage": {"filesystems": [{"device": "/dev/a", "format": "none"}]}}),
                "3.3.0",
            ),
            (json!({"kernelArguments": {"shouldExist": ["a"]}}), "3.3.0"),
            (file(&json!({"path": "/a", "mode": 0o4755})), "3.6.0"),
            (
                file(&json!({"path": "/a", "contents": {"source": "arn:aws:s3:::b/k"}})),
                "3.4.0",
            ),
            (
                json!({"storage": {"luks": [{"name": "a", "device": "/dev/a", "cex": {"enabled": true}}]}}),
                "3.5.0",
            ),
        ] {
            let found = document("3.6.0", config.clone()).lowest().unwrap();
            assert_eq!(found.version().as_str(), lowest, "{config}");
            assert_eq!(found.to_json()["ignition"]["version"], lowest);
        }
    }

    #[test]
    fn obstacles_are_named() {
        let document = document(
            "3.6.0",
            json!({
                "kernelArguments": {"shouldExist": ["a"]},
                "storage": {"files": [{"path": "/a", "mode": 0o4755, "contents": {"source": "gs://b/k"}}]},
            }),
        );
        let problems = document.convert(SpecVersion::V3_1).unwrap_err();
        let paths: Vec<_> = problems
            .as_slice()
            .iter()
            .map(|problem| problem.path.as_str())
            .collect();
        assert_eq!(
            paths,
            [
                "kernelArguments",
                "storage.files[0].contents.source",
                "storage.files[0].mode"
            ]
        );
        let problems = document.convert(SpecVersion::V3_3).unwrap_err();
        assert_eq!(problems.as_slice().len(), 1, "{problems:?}");
    }

    #[test]
    fn ignored_bits_stay_without_effect() {
        let old = document("3.3.0", file(&json!({"path": "/a", "mode": 0o4755})));
        let new = old.convert(SpecVersion::V3_6).unwrap();
        assert_eq!(new.to_json()["storage"]["files"][0]["mode"], 0o755);
        let same = old.convert(SpecVersion::V3_1).unwrap();
        assert_eq!(same.to_json()["storage"]["files"][0]["mode"], 0o4755);
        // A child of a newer version does not bring them back.
        let child = document("3.6.0", file(&json!({"path": "/a", "overwrite": false})));
        let merged = old.merge(&child).to_json();
        assert_eq!(
            merged["storage"]["files"][0],
            json!({"path": "/a", "mode": 0o755, "overwrite": false})
        );
    }

    #[test]
    fn links_need_a_target_since_3_3() {
        let document = document("3.2.0", json!({"storage": {"links": [{"path": "/a"}]}}));
        let problems = document.convert(SpecVersion::V3_3).unwrap_err();
        assert_eq!(problems.as_slice()[0].path, "storage.links[0].target");
    }
}
