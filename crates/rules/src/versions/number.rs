//! Platform versions: `4.16`, `4.16.3`, `4.17.0-ec.2`, `4.16-multi`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use semver::Prerelease;

/// A version or, without a patch, a selector of the newest version of a minor release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Number {
    /// First part.
    pub major: u64,
    /// Second part.
    pub minor: u64,
    /// Third part; none in a selector.
    pub patch: Option<u64>,
    /// Text after the hyphen, without `-multi`; empty in a final release.
    pub pre: Prerelease,
    /// Whether `-multi` closed the text: a release for several architectures.
    pub multi: bool,
}

impl Number {
    /// `major.minor` alone.
    pub fn minor_text(&self) -> String {
        format!("{}.{}", self.major, self.minor)
    }

    /// Not a final release.
    pub fn is_pre_release(&self) -> bool {
        !self.pre.is_empty()
    }

    /// Order by precedence; a selector precedes every version of its minor release.
    pub fn precedence(&self, other: &Self) -> Ordering {
        (self.major, self.minor, self.patch)
            .cmp(&(other.major, other.minor, other.patch))
            .then_with(|| match (self.pre.is_empty(), other.pre.is_empty()) {
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                _ => self.pre.cmp(&other.pre),
            })
    }

    /// Whether the two are versions of the same minor release.
    pub fn same_minor(&self, other: &Self) -> bool {
        (self.major, self.minor) == (other.major, other.minor)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        if let Some(patch) = self.patch {
            write!(f, ".{patch}")?;
        }
        if !self.pre.is_empty() {
            write!(f, "-{}", self.pre)?;
        }
        if self.multi {
            f.write_str("-multi")?;
        }
        Ok(())
    }
}

/// A malformed version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a version: it should look like 4.16, 4.16.3 or 4.16.3-rc.1")]
pub struct MalformedVersion(String);

impl FromStr for Number {
    type Err = MalformedVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| MalformedVersion(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Number> {
    let (text, multi) = match text.strip_suffix("-multi") {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let (numbers, pre) = text.split_once('-').unwrap_or((text, ""));
    let mut parts = numbers.split('.').map(number);
    let (major, minor) = (parts.next()??, parts.next()??);
    let patch = match parts.next() {
        Some(patch) => Some(patch?),
        None => None,
    };
    let dangling = text.contains('-') && pre.is_empty();
    if parts.next().is_some() || dangling || (patch.is_none() && !pre.is_empty()) {
        return None;
    }
    Some(Number {
        major,
        minor,
        patch,
        pre: Prerelease::new(pre).ok()?,
        multi,
    })
}

fn number(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Whether `version` belongs to `major.minor` or a later minor release; pre-releases count as their release.
///
/// A malformed version is older than everything.
pub fn at_least(version: &str, major: u64, minor: u64) -> bool {
    version
        .parse::<Number>()
        .is_ok_and(|number| (number.major, number.minor) >= (major, minor))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn good_texts_print_as_they_were() {
        for text in [
            "4.16",
            "4.16.3",
            "4.17.0-ec.2",
            "4.16-multi",
            "4.16.3-rc.1-multi",
        ] {
            assert_eq!(text.parse::<Number>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn bad_texts_are_refused() {
        for text in [
            "",
            "4",
            "4.",
            "4.x",
            "v4.16",
            "4.16.1.2",
            "4.16-rc.1",
            "4.16.1-",
            "+4.1",
            "4.16 ",
        ] {
            assert!(text.parse::<Number>().is_err(), "{text}");
        }
    }

    #[test]
    fn order_is_by_precedence() {
        let texts = [
            "4.9.50",
            "4.16",
            "4.16.0-ec.1",
            "4.16.0-ec.10",
            "4.16.0-rc.0",
            "4.16.0",
            "4.16.10",
        ];
        let numbers: Vec<Number> = texts.iter().map(|text| text.parse().unwrap()).collect();
        for pair in numbers.windows(2) {
            assert_eq!(pair[0].precedence(&pair[1]), Ordering::Less, "{pair:?}");
        }
    }

    #[test]
    fn minor_releases_compare_as_numbers() {
        assert!(at_least("4.16.3", 4, 9));
        assert!(at_least("4.16.0-ec.1", 4, 16));
        assert!(!at_least("4.9", 4, 16));
        assert!(!at_least("nonsense", 4, 0));
    }

    proptest! {
        #[test]
        fn parsing_never_panics_and_round_trips(text in "[0-9.a-z-]{0,16}|\\PC*") {
            if let Ok(number) = text.parse::<Number>() {
                prop_assert_eq!(number.to_string().parse::<Number>().unwrap(), number);
            }
        }
    }
}
