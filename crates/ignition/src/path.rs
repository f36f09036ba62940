//! Paths of members, as in `storage.files[0].mode`, and the comparison of their names.

use std::fmt;

use crate::problem::quoted;

/// The path to a value, linked to the one above; built while a tree is walked, written out for messages only.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NodePath<'a> {
    /// The document.
    Root,
    /// A member.
    Member(&'a NodePath<'a>, &'a str),
    /// An item of a list.
    Item(&'a NodePath<'a>, usize),
}

impl fmt::Display for NodePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Item(above, index) => write!(f, "{above}[{index}]"),
            Self::Member(above, name) => {
                let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
                let is_plain = (1..=40).contains(&name.len()) && name.bytes().all(is_word);
                write!(f, "{above}")?;
                if !matches!(above, Self::Root) {
                    write!(f, ".")?;
                }
                if is_plain {
                    write!(f, "{name}")
                } else {
                    write!(f, "{}", quoted(name))
                }
            }
        }
    }
}

/// Go's comparison of names: ASCII letters in any case, and two letters of Unicode that fold to ASCII.
pub(crate) fn is_same_folded(name: &str, found: &str) -> bool {
    let fold = |letter: char| match letter {
        'ſ' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    };
    name.chars().map(fold).eq(found.chars().map(fold))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_readable() {
        let storage = NodePath::Member(&NodePath::Root, "storage");
        let files = NodePath::Member(&storage, "files");
        let file = NodePath::Item(&files, 3);
        let odd = NodePath::Member(&file, "a.b\n");
        assert_eq!(NodePath::Root.to_string(), "");
        assert_eq!(odd.to_string(), "storage.files[3].\"a.b\\n\"");
    }
}
