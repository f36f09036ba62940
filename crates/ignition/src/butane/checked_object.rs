//! An object of a Butane document under a rule, and its reports.

use located_yaml::Position;
use located_yaml::v1_2::ConfigNode;

use super::spec::ButaneSpec;
use crate::path::NodePath;
use crate::problem::{ProblemClass, ProblemList};

/// An object under a rule.
pub(super) struct CheckedObject<'n, 'p> {
    pub(super) node: &'n ConfigNode,
    pub(super) path: &'n NodePath<'n>,
    pub(super) spec: &'static ButaneSpec,
    pub(super) problems: &'p mut ProblemList,
}

impl CheckedObject<'_, '_> {
    /// The text of a member; empty without one.
    pub(super) fn text(&self, name: &str) -> &str {
        self.node
            .get(name)
            .and_then(ConfigNode::as_text)
            .unwrap_or_default()
    }

    pub(super) fn is_true(&self, path: &[&str]) -> bool {
        self.node.find(path).and_then(ConfigNode::as_bool) == Some(true)
    }

    /// The length of a list.
    pub(super) fn count(&self, path: &[&str]) -> usize {
        self.node.find(path).map_or(0, |list| list.items().len())
    }

    /// Reports a mistake of a member, at its value, else at the object above.
    pub(super) fn refuse(&mut self, path: &[&str], reason: impl Into<String>) {
        self.report(ProblemClass::Refused, path, reason);
    }

    /// Reports a doubt.
    pub(super) fn doubt(&mut self, path: &[&str], reason: impl Into<String>) {
        self.report(ProblemClass::Doubtful, path, reason);
    }

    fn report(&mut self, class: ProblemClass, path: &[&str], reason: impl Into<String>) {
        let mut at = self.node.at;
        let mut node = Some(self.node);
        for name in path {
            node = node.and_then(|node| node.get(name));
            at = node.map_or(at, |node| node.at);
        }
        let above = self.path.to_string();
        let separator = if above.is_empty() || path.is_empty() {
            ""
        } else {
            "."
        };
        let path = format!("{above}{separator}{}", path.join("."));
        self.problems.add(class, at, path, reason);
    }

    /// Adds a problem at its own position.
    pub(super) fn add(&mut self, class: ProblemClass, at: Position, path: &str, reason: String) {
        self.problems.add(class, at, path, reason);
    }
}
