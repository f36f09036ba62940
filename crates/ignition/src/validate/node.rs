//! The view of a check on its object.

use located_yaml::v1_2::ConfigNode;

use crate::config::SpecVersion;
use crate::path::NodePath;
use crate::problem::{ProblemClass, ProblemList};

/// An object with its path. Members of a wrong type are reported elsewhere; here they are neither present nor blank.
#[derive(Clone, Copy)]
pub(super) struct CheckedNode<'a> {
    pub(super) node: &'a ConfigNode,
    pub(super) path: &'a NodePath<'a>,
    pub(super) version: SpecVersion,
}

/// A step from the object to the value that a problem is about.
#[derive(Clone, Copy)]
pub(super) enum Step<'a> {
    Member(&'a str),
    Item(usize),
}

impl<'a> CheckedNode<'a> {
    pub(super) fn has(&self, name: &str) -> bool {
        self.node.get(name).is_some()
    }

    /// The text of a member.
    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.node.get(name)?.as_text()
    }

    /// The text of a member, unless it is empty.
    pub(super) fn filled(&self, name: &str) -> Option<&'a str> {
        self.text(name).filter(|text| !text.is_empty())
    }

    /// Whether a text is missing or empty.
    pub(super) fn is_blank(&self, name: &str) -> bool {
        match self.node.get(name) {
            None => true,
            Some(node) => node.as_text() == Some(""),
        }
    }

    pub(super) fn is_true(&self, name: &str) -> bool {
        self.flag(name) == Some(true)
    }

    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        self.node.get(name)?.as_bool()
    }

    pub(super) fn integer(&self, name: &str) -> Option<i64> {
        self.node.get(name)?.as_integer()
    }

    pub(super) fn items(&self, name: &str) -> &'a [ConfigNode] {
        self.node.get(name).map_or(&[], ConfigNode::items)
    }

    pub(super) fn refuse(
        &self,
        problems: &mut ProblemList,
        steps: &[Step<'_>],
        reason: impl Into<String>,
    ) {
        self.report(problems, ProblemClass::Refused, steps, reason);
    }

    pub(super) fn doubt(
        &self,
        problems: &mut ProblemList,
        steps: &[Step<'_>],
        reason: impl Into<String>,
    ) {
        self.report(problems, ProblemClass::Doubtful, steps, reason);
    }

    /// Reports a problem at the deepest value of the steps that exists.
    fn report(
        &self,
        problems: &mut ProblemList,
        class: ProblemClass,
        steps: &[Step<'_>],
        reason: impl Into<String>,
    ) {
        let mut found = Some(self.node);
        let mut at = self.node.at;
        let mut path = self.path.to_string();
        for step in steps {
            found = found.and_then(|node| match *step {
                Step::Member(name) => node.get(name),
                Step::Item(index) => node.items().get(index),
            });
            at = found.map_or(at, |node| node.at);
            match *step {
                Step::Item(index) => path = format!("{path}[{index}]"),
                Step::Member(name) if path.is_empty() => name.clone_into(&mut path),
                Step::Member(name) => path = format!("{path}.{name}"),
            }
        }
        problems.add(class, at, path, reason);
    }
}
