//! YAML, taken apart: each scalar under the name that its path gives it.

use std::collections::HashMap;

use located_yaml::v1_2::{ConfigMember, ConfigNode, NodeValue, ScalarKind, from_yaml};
use located_yaml::{DocumentError, Position};

use super::key::PREFIX;

/// Maps and lists in one another.
const DEPTH_LIMIT: usize = 16;
/// Scalars of one document.
const LEAVES_LIMIT: usize = 10_000;

/// A scalar, or a map or list without any.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    /// The keys on the way to it in lower case, and the places in lists from 0 on, joined by `_`.
    pub(super) name: String,
    /// As it is written there; nothing for null.
    pub(super) text: String,
    pub(super) line: usize,
}

type Result<T> = std::result::Result<T, DocumentError>;

/// The scalars of the map or list in `text`, each named below `prefix`.
///
/// Errors: no YAML, a scalar alone, a key that comes twice, also in another case.
pub(super) fn leaves(text: &str, prefix: &str) -> Result<Vec<Leaf>> {
    let root = from_yaml(text)?;
    let mut leaves = Vec::new();
    match root.value {
        _ if root.is_null() => {}
        NodeValue::Scalar { .. } => return Err(no_keys(&root)),
        NodeValue::List(_) if prefix == PREFIX => return Err(no_keys(&root)),
        NodeValue::List(_) | NodeValue::Object(_) => add(&mut leaves, prefix, &root, 0)?,
    }
    Ok(leaves)
}

fn no_keys(node: &ConfigNode) -> DocumentError {
    DocumentError::new(node.at, "expected keys with values")
}

fn add(leaves: &mut Vec<Leaf>, name: &str, node: &ConfigNode, depth: usize) -> Result<()> {
    if depth > DEPTH_LIMIT {
        return Err(DocumentError::new(node.at, "too deep"));
    }
    match &node.value {
        NodeValue::Object(members) if !members.is_empty() => {
            add_members(leaves, name, members, depth)
        }
        NodeValue::List(items) if !items.is_empty() => {
            let mut items = items.iter().enumerate();
            items.try_for_each(|(index, item)| {
                add(leaves, &format!("{name}_{index}"), item, depth + 1)
            })
        }
        NodeValue::Scalar { kind, text } if *kind != ScalarKind::Null => {
            add_leaf(leaves, name, text, node.at)
        }
        _ => add_leaf(leaves, name, "", node.at),
    }
}

fn add_members(
    leaves: &mut Vec<Leaf>,
    name: &str,
    members: &[ConfigMember],
    depth: usize,
) -> Result<()> {
    let mut lines = HashMap::new();
    for member in members {
        let key = member.name.to_lowercase();
        if let Some(line) = lines.insert(key.clone(), member.at.line) {
            let reason = format!("key {key:?} is already in line {line}");
            return Err(DocumentError::new(member.at, reason));
        }
        add(leaves, &format!("{name}_{key}"), &member.node, depth + 1)?;
    }
    Ok(())
}

fn add_leaf(leaves: &mut Vec<Leaf>, name: &str, text: &str, at: Position) -> Result<()> {
    if leaves.len() == LEAVES_LIMIT {
        let reason = format!("there are more than {LEAVES_LIMIT} values");
        return Err(DocumentError::new(at, reason));
    }
    leaves.push(Leaf {
        name: name.to_owned(),
        text: text.to_owned(),
        line: at.line,
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn scalars_keep_their_text_and_their_line() {
        let text = "a:\n  B: 007 # seven\n  c: [x, 'y: z']\nd:\ne: {}\nf: |\n  1\n  2\ng: 'null'\nh: 1.50\n";
        let leaves = leaves(text, "p").unwrap();
        let leaves: Vec<_> = leaves
            .iter()
            .map(|leaf| (&*leaf.name, &*leaf.text, leaf.line))
            .collect();
        let expected = [
            ("p_a_b", "007", 2),
            ("p_a_c_0", "x", 3),
            ("p_a_c_1", "y: z", 3),
            ("p_d", "", 4),
            ("p_e", "", 5),
            ("p_f", "1\n2\n", 7),
            ("p_g", "null", 9),
            ("p_h", "1.50", 10),
        ];
        assert_eq!(leaves, expected);
    }

    #[test]
    fn keys_come_once() {
        for text in ["a: 1\na: 2\n", "a: 1\nA: 2\n"] {
            let error = leaves(text, "p").unwrap_err();
            assert!(error.to_string().starts_with("2:1: key "), "{error}");
        }
    }

    #[test]
    fn depth_and_number_of_values_are_bounded() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(leaves(&nested(DEPTH_LIMIT + 1), "p").is_ok());
        for levels in [DEPTH_LIMIT + 2, 1000] {
            assert!(leaves(&nested(levels), "p").is_err());
        }
        let list = |items: usize| format!("[{}]", "1,".repeat(items));
        assert_eq!(
            leaves(&list(LEAVES_LIMIT), "p").unwrap().len(),
            LEAVES_LIMIT
        );
        assert!(leaves(&list(LEAVES_LIMIT + 1), "p").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "([a-z]{0,3}[:\\-\\[\\]{},&*'\"|>#!?% \n]{0,4}){0,30}") {
            leaves(&text, "p").ok();
        }
    }
}
