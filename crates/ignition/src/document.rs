//! A configuration as Ignition reads it: a tree that the table describes, with its version.

use located_yaml::v1_2::{ConfigNode, from_json};
use serde_json::Value;

use crate::Error;
use crate::config::IgnitionConfig;
use crate::foreign::kind_of_bytes;
use crate::path::NodePath;
use crate::problem::{ProblemClass, ProblemList};
use crate::shape::shape;
use crate::validate::validate;
use crate::version::{SpecVersion, find_version};

/// A configuration without unknown members. It may still be one that Ignition refuses, see the problems of
/// [`read`](Self::read).
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigDocument {
    pub(crate) version: SpecVersion,
    pub(crate) root: ConfigNode,
}

impl ConfigDocument {
    /// Reads a JSON document and reports all of its problems; none is returned unless its version is known.
    pub fn read(json: &[u8]) -> (Option<Self>, ProblemList) {
        match from_json(json) {
            Ok(root) => Self::from_tree(&root),
            Err(error) => {
                let mut problems = ProblemList::default();
                let reason = kind_of_bytes(json).map_or(error.reason, str::to_owned);
                problems.add(ProblemClass::Refused, error.at, NodePath::Root, reason);
                (None, problems)
            }
        }
    }

    /// As [`read`](Self::read), unless Ignition would refuse or ignore some of it.
    ///
    /// Errors: the first problem, as [`IgnitionConfig::parse`].
    pub(crate) fn accept(json: &[u8]) -> Result<Self, Error> {
        let (document, problems) = Self::read(json);
        problems.accept()?;
        document.ok_or_else(|| Error::Invalid {
            at: "ignition.version".to_owned(),
            reason: "it is missing".to_owned(),
        })
    }

    /// As [`read`](Self::read), from a tree: positions are the tree's.
    pub fn from_tree(root: &ConfigNode) -> (Option<Self>, ProblemList) {
        let mut problems = ProblemList::default();
        let document = find_version(root, &mut problems).map(|version| {
            let mut document = Self {
                version,
                root: shape(root, version, &mut problems),
            };
            validate(&document.root, version, &mut problems);
            document.set_version(version);
            document
        });
        (document, problems.finish())
    }

    /// The document of records. Positions are those of the compact JSON.
    ///
    /// Errors: as [`IgnitionConfig::validate`].
    pub fn from_config(config: &IgnitionConfig) -> Result<Self, Error> {
        Self::accept(&config.to_json())
    }

    /// The version of the specification.
    pub fn version(&self) -> SpecVersion {
        self.version
    }

    /// The tree.
    pub fn root(&self) -> &ConfigNode {
        &self.root
    }

    /// All problems of the configuration as it is now.
    pub fn problems(&self) -> ProblemList {
        let mut problems = ProblemList::default();
        shape(&self.root, self.version, &mut problems);
        validate(&self.root, self.version, &mut problems);
        problems.finish()
    }

    /// The configuration as JSON.
    pub fn to_json(&self) -> Value {
        self.root.to_json()
    }

    /// The typed records.
    ///
    /// Errors: `Invalid` when a member has the wrong type, which is among the problems too.
    pub fn to_config(&self) -> Result<IgnitionConfig, Error> {
        serde_path_to_error::deserialize(self.to_json()).map_err(|error| Error::Invalid {
            at: error.path().to_string(),
            reason: error.into_inner().to_string(),
        })
    }

    /// Writes the version into the tree, in its usual spelling.
    pub(crate) fn set_version(&mut self, version: SpecVersion) {
        self.version = version;
        let ignition = self.root.get_mut("ignition");
        if let Some(node) = ignition.and_then(|ignition| ignition.get_mut("version")) {
            *node = ConfigNode::text(node.at, version.as_str());
        }
    }
}

impl IgnitionConfig {
    /// Reads and validates a configuration. Members that Ignition would ignore are refused.
    ///
    /// Errors: `Syntax` with line and column, `Invalid` with the member's path: the first problem.
    pub fn parse(json: &[u8]) -> Result<Self, Error> {
        ConfigDocument::accept(json)?.to_config()
    }

    /// Checks the rules that the types do not express.
    ///
    /// Errors: `Invalid` for the first member that Ignition would refuse or ignore.
    pub fn validate(&self) -> Result<(), Error> {
        Self::parse(&self.to_json()).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_member() {
        for (text, expected) in [
            (
                r#"{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"/a","mode":"0644"}]}}"#,
                "storage.files[0].mode: expected a whole number, found text",
            ),
            (
                r#"{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"/a","modus":1}]}}"#,
                "storage.files[0].modus: unknown member",
            ),
            (
                "{\n",
                "line 2, column 1: not JSON: the end of the text instead of the name of a member in double quotes",
            ),
            (
                r#"{"ignition":{"version":"3.1.0"}} x"#,
                "line 1, column 34: not JSON: 'x' instead of the end of the document",
            ),
            (
                r#"{"ignition":{"version":"2.2.0"}}"#,
                "ignition.version: \"2.2.0\" is not supported, expected one of 3.0.0 to 3.6.0: convert the configuration, as by ign-converter",
            ),
            (
                "[]",
                "ignition.version: a configuration needs a version, one of 3.0.0 to 3.6.0",
            ),
        ] {
            let error = IgnitionConfig::parse(text.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
}
