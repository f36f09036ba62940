//! Patterns of repository names.

use std::fmt;

use regex::Regex;
use serde::Deserialize;

const EVERYTHING: &str = "**";

/// A pattern: `*` stands for any text without `/`, `**` for any text at all.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Glob {
    text: String,
    /// The same pattern; absent when every name matches.
    regex: Option<Regex>,
}

impl Glob {
    /// The pattern of every name.
    pub(crate) fn everything() -> Self {
        Self {
            text: EVERYTHING.to_owned(),
            regex: None,
        }
    }

    /// Whether every name matches.
    pub(crate) fn is_everything(&self) -> bool {
        self.regex.is_none()
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        self.regex.as_ref().is_none_or(|regex| regex.is_match(name))
    }
}

impl PartialEq for Glob {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Glob {}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for Glob {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let can_stand = |b: u8| {
            b.is_ascii_lowercase()
                || b.is_ascii_digit()
                || matches!(b, b'.' | b'_' | b'-' | b'/' | b'*')
        };
        if text.is_empty() || !text.bytes().all(can_stand) || text.contains("***") {
            return Err(format!(
                "{text:?} matches no repository: expected lower-case letters, digits, . _ - / with * and **"
            ));
        }
        if text == EVERYTHING {
            return Ok(Self::everything());
        }
        let parts: Vec<_> = text
            .split(EVERYTHING)
            .map(|part| regex::escape(part).replace(r"\*", "[^/]*"))
            .collect();
        let regex = Regex::new(&format!("^{}$", parts.join(".*"))).map_err(|e| e.to_string())?;
        Ok(Self {
            regex: Some(regex),
            text,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn glob(text: &str) -> Glob {
        Glob::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn patterns() {
        for (pattern, right, wrong) in [
            ("a/b", &["a/b"][..], &["a", "a/b/c", "a/bb", "x/a/b"][..]),
            ("**", &["a", "a/b/c"], &[]),
            ("*", &["a", "a-b"], &["a/b"]),
            ("a/*", &["a/b"], &["a", "a/b/c", "b/b"]),
            ("a/**", &["a/b", "a/b/c"], &["a", "ab/c"]),
            ("a**", &["a", "ab", "a/b"], &["ba"]),
            ("**/b", &["a/b", "x/y/b"], &["b", "a/bb"]),
            (
                "*/release*",
                &["ocp/release-4", "a/release"],
                &["release", "a/b/release", "a/release/x"],
            ),
            (
                "**a*b/c",
                &["x/ab/c", "a/ab/c", "aab/ab/c"],
                &["a/b/c", "ab/d"],
            ),
        ] {
            for name in right {
                assert!(glob(pattern).matches(name), "{pattern} {name}");
            }
            for name in wrong {
                assert!(!glob(pattern).matches(name), "{pattern} {name}");
            }
        }
    }

    #[test]
    fn what_can_match_nothing_is_refused() {
        for wrong in ["", "A", "a b", "a:b", "***", "a?", "ä"] {
            assert!(Glob::try_from(wrong.to_owned()).is_err(), "{wrong:?}");
        }
    }

    /// Reference implementation of the stars, without optimisation.
    fn means(pattern: &str, name: &str) -> bool {
        let any = |rest: &str, may_cross: bool| {
            (0..=name.len())
                .take_while(|&end| may_cross || !name[..end].contains('/'))
                .any(|end| means(rest, &name[end..]))
        };
        if let Some(rest) = pattern.strip_prefix("**") {
            return any(rest, true);
        }
        if let Some(rest) = pattern.strip_prefix('*') {
            return any(rest, false);
        }
        match (pattern.chars().next(), name.chars().next()) {
            (None, None) => true,
            (Some(a), Some(b)) if a == b => means(&pattern[1..], &name[1..]),
            _ => false,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn stars_mean_what_they_mean(
            pattern in "[ab/]{0,2}(\\*\\*?[ab/]{1,2}){0,3}\\*{0,2}",
            name in "[ab/]{0,10}",
        ) {
            prop_assume!(!pattern.is_empty());
            prop_assert_eq!(glob(&pattern).matches(&name), means(&pattern, &name));
        }
    }
}
