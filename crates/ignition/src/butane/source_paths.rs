//! Paths of the document for problems that are found in the configuration.

use std::collections::HashMap;

use located_yaml::Position;
use located_yaml::v1_2::{ConfigNode, NodeValue};

use crate::path::NodePath;
use crate::problem::ProblemList;
use crate::schema::butane_name;

/// The paths of all values of a document by their positions.
#[derive(Debug, Default)]
struct SourcePaths(HashMap<Position, String>);

impl SourcePaths {
    fn add(&mut self, node: &ConfigNode, path: &NodePath<'_>) {
        self.0.entry(node.at).or_insert_with(|| path.to_string());
        match &node.value {
            NodeValue::Scalar { .. } => {}
            NodeValue::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.add(item, &NodePath::Item(path, index));
                }
            }
            NodeValue::Object(members) => {
                for member in members {
                    self.add(&member.node, &NodePath::Member(path, &member.name));
                }
            }
        }
    }

    /// The path in the document. Values of short forms have the path of the key in short form.
    fn of(&self, path: &str, at: Position) -> String {
        let own: Vec<String> = path.split('.').map(butane_name).collect();
        let own = own.join(".");
        match self.0.get(&at) {
            // A member that is missing is reported at the object around it.
            Some(source) if !own.starts_with(source.as_str()) => source.clone(),
            _ => own,
        }
    }
}

/// Adds problems of the configuration to those of the document `root`.
pub(super) fn add(found: &ProblemList, root: &ConfigNode, problems: &mut ProblemList) {
    if found.as_slice().is_empty() {
        return;
    }
    let mut paths = SourcePaths::default();
    paths.add(root, &NodePath::Root);
    for problem in found.as_slice() {
        let path = paths.of(&problem.path, problem.at);
        problems.add(problem.class, problem.at, path, problem.reason.as_str());
    }
}

#[cfg(test)]
mod tests {
    use located_yaml::v1_2::from_yaml;

    use super::*;
    use crate::problem::ProblemClass;

    #[test]
    fn problems_get_the_paths_of_the_document() {
        let root =
            from_yaml("storage:\n  trees:\n    - local: a\n  links:\n    - path: /a\n").unwrap();
        let mut found = ProblemList::default();
        let mut add_at = |line, column, path: &str| {
            let at = Position { line, column };
            found.add(ProblemClass::Refused, at, path, "x");
        };
        add_at(3, 7, "storage.files[7].sizeMiB");
        add_at(5, 7, "storage.links[0].target");
        add_at(9, 9, "storage.noSuchThing");
        let mut problems = ProblemList::default();
        add(&found, &root, &mut problems);
        let paths: Vec<_> = problems
            .as_slice()
            .iter()
            .map(|problem| problem.path.as_str())
            .collect();
        assert_eq!(
            paths,
            [
                "storage.trees[0]",
                "storage.links[0].target",
                "storage.no_such_thing"
            ]
        );
    }
}
