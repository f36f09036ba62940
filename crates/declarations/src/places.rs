//! Places of the values of both files, for refusals of the API.

use std::collections::BTreeMap;

use located_yaml::Position;
use located_yaml::v1_2::{ConfigNode, NodeValue};

/// Longest path of a value that is kept: the API has no longer ones, and keys may have any length. Units: bytes.
const PATH_BYTES: usize = 256;

/// Positions of the values of both files, by file and path. They are no part of the wanted state: all are equal.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemberPlaces(BTreeMap<(&'static str, String), Position>);

impl PartialEq for MemberPlaces {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl MemberPlaces {
    /// Adds all values of a file.
    pub(crate) fn add(&mut self, file: &'static str, node: &ConfigNode) {
        self.add_below(file, node, "");
    }

    fn add_below(&mut self, file: &'static str, node: &ConfigNode, path: &str) {
        if path.len() > PATH_BYTES {
            return;
        }
        self.0.insert((file, path.to_owned()), node.at);
        match &node.value {
            NodeValue::Scalar { .. } => {}
            NodeValue::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.add_below(file, item, &format!("{path}[{at}]"));
                }
            }
            NodeValue::Object(members) => {
                for member in members.iter().filter(|one| one.name != "networkConfig") {
                    let name = &member.name;
                    let separator = if path.is_empty() { "" } else { "." };
                    self.add_below(file, &member.node, &format!("{path}{separator}{name}"));
                }
            }
        }
    }

    /// The position of a value, or of the closest one above it.
    pub(crate) fn position(&self, file: &'static str, path: &str) -> Option<Position> {
        let mut path = path;
        loop {
            if let Some(at) = self.0.get(&(file, path.to_owned())) {
                return Some(*at);
            }
            path = path.rfind(['.', '[']).map(|end| &path[..end])?;
        }
    }
}

#[cfg(test)]
mod tests {
    use located_yaml::v1_2::documents_from_yaml;

    use super::*;
    use crate::documents::INSTALL;

    #[test]
    fn values_below_long_keys_have_the_place_above_them() {
        for (length, expected) in [(PATH_BYTES, "2:257"), (PATH_BYTES + 1, "2:3")] {
            let key = "k".repeat(length - "pki.".len());
            let document = &documents_from_yaml(&format!("pki:\n  {key}: 1\n")).unwrap()[0];
            let mut places = MemberPlaces::default();
            places.add(INSTALL, document);
            let found = places.position(INSTALL, &format!("pki.{key}"));
            assert_eq!(found.unwrap().to_string(), expected);
        }
    }
}
