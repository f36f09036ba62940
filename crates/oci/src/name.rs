//! Names of repositories and tags.

use std::fmt;
use std::str::FromStr;

use model::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Longest repository name. Source: distribution-spec; the peers refuse longer ones.
const REPOSITORY_LIMIT_BYTES: usize = 255;
/// Longest tag. Source: distribution-spec, tag grammar.
const TAG_LIMIT_BYTES: usize = 128;

/// The name of a repository within a registry: lower-case components joined by `/`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Repository(String);

/// A tag of a repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(String);

impl Repository {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Tag {
    /// The tag.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Repository {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text.len() > REPOSITORY_LIMIT_BYTES {
            return Err(Error::invalid(
                "repository name",
                format!(
                    "{} bytes are more than {REPOSITORY_LIMIT_BYTES}",
                    text.len()
                ),
            ));
        }
        if !text.split('/').all(is_component) {
            return Err(Error::invalid(
                "repository name",
                format!(
                    "{text:?}: expected lower-case letters and digits, joined by one of . _ __ - and /"
                ),
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

/// `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*`
fn is_component(text: &str) -> bool {
    let is_alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    let (Some(&first), Some(&last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    is_alphanumeric(first)
        && is_alphanumeric(last)
        && bytes.split(|&b| is_alphanumeric(b)).all(|joint| {
            matches!(joint, b"" | b"." | b"_" | b"__") || joint.iter().all(|&b| b == b'-')
        })
}

impl FromStr for Tag {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        let mut bytes = text.bytes();
        let fits = text.len() <= TAG_LIMIT_BYTES
            && bytes.next().is_some_and(is_word)
            && bytes.all(|b| is_word(b) || b == b'.' || b == b'-');
        if !fits {
            return Err(Error::invalid(
                "tag",
                format!(
                    "{text:?}: expected 1 to {TAG_LIMIT_BYTES} letters, digits, _ . or -, not beginning with . or -"
                ),
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! as_text {
    ($name:ident) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?
                    .parse()
                    .map_err(serde::de::Error::custom)
            }
        }
    };
}

as_text!(Repository);
as_text!(Tag);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn repositories() {
        for right in [
            "a",
            "a/b",
            "ocp4/openshift4",
            "a.b_c__d---e/0",
            "blobs/uploads",
            "tags/list",
        ] {
            assert!(right.parse::<Repository>().is_ok(), "{right}");
        }
        let long = "a".repeat(256);
        for wrong in [
            "", "/", "a/", "/a", "a//b", "A", "a..b", "a___b", "_catalog", "a-", "a/../b", ".",
            "a%2fb", "ä", &long,
        ] {
            assert!(wrong.parse::<Repository>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn tags() {
        let longest = "a".repeat(128);
        for right in ["latest", "4.14.1-x86_64", "_x", "A", longest.as_str()] {
            assert!(right.parse::<Tag>().is_ok(), "{right}");
        }
        let long = "a".repeat(129);
        for wrong in ["", ".", "..", "-a", "a/b", "a:b", "a b", "ä", &long] {
            assert!(wrong.parse::<Tag>().is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn names_stay_below_their_folder(text in "\\PC{0,60}") {
            if let Ok(name) = text.parse::<Repository>() {
                prop_assert!(name.as_str().split('/').all(|c| !c.is_empty() && !c.starts_with(['.', '_'])));
            }
            if let Ok(tag) = text.parse::<Tag>() {
                prop_assert!(!tag.as_str().starts_with('.') && !tag.as_str().contains('/'));
            }
        }
    }
}
