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
