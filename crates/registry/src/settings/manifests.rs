//! Settings of the validation of manifests.

use std::collections::BTreeMap;

use oci::Platform;
use regex::RegexSet;
use service::settings::{Setting, Shape};

use super::kinds::{items, nothing};

/// Regular expressions, of which one has to be found in a text.
#[derive(Debug, Clone, Default)]
pub struct Patterns(Option<RegexSet>);

impl Patterns {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.0.as_ref().is_some_and(|set| set.is_match(text))
    }

    fn new(patterns: &[&str]) -> Result<Self, String> {
        let set = RegexSet::new(patterns).map_err(|error| error.to_string())?;
        Ok(Self(Some(set)))
    }
}

impl Setting for Patterns {
    const EXPECTED: &'static str = "list of regular expressions";
    const SHAPE: Shape = Shape::Parts;

    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        // Not separated by commas, which patterns may hold.
        Self::new(&[text])
    }

    fn parse_parts(parts: &BTreeMap<&str, &str>) -> Result<Self, String> {
        Self::new(&parts.values().copied().collect::<Vec<_>>())
    }
}

/// Which of its images an index needs to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlatformChecks {
    /// All.
    All,
    /// None.
    None,
    /// Those for the platforms of the list.
    List,
    /// One of them at least.
    Any,
}

impl Setting for PlatformChecks {
    const EXPECTED: &'static str = "any, all, none or list";

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            "none" => Ok(Self::None),
            "list" => Ok(Self::List),
            "any" => Ok(Self::Any),
            _ => Err("none of them".to_owned()),
        }
    }
}

/// Platforms.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Platforms(pub(crate) Vec<Platform>);

impl Setting for Platforms {
    const EXPECTED: &'static str = "list of os and architecture";
    const SHAPE: Shape = Shape::Parts;

    fn parse(text: &str) -> Result<Self, String> {
        nothing(text)
    }

    fn parse_parts(parts: &BTreeMap<&str, &str>) -> Result<Self, String> {
        let platform = |parts: BTreeMap<&str, &str>| {
            if let Some(other) = parts
                .keys()
                .find(|name| !["os", "architecture"].contains(name))
            {
                return Err(format!("{other:?} is not known"));
            }
            let part = |name: &str| parts.get(name).copied().ok_or(format!("{name} is missing"));
            let (os, architecture) = (part("os")?, part("architecture")?);
            Ok(Platform {
                os: os.to_owned(),
                ..Platform::linux(architecture)
            })
        };
        let platforms = items(parts)?.into_values().map(platform);
        Ok(Self(platforms.collect::<Result<_, _>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_may_hold_commas() {
        let patterns = Patterns::parse("^https://a{1,2}/").unwrap();
        assert!(patterns.is_match("https://aa/x") && !patterns.is_match("https://b/"));
        let parts = [("0", "^a"), ("1", "b$")].into();
        let patterns = Patterns::parse_parts(&parts).unwrap();
        assert!(patterns.is_match("ax") && patterns.is_match("xb") && !patterns.is_match("x"));
        assert!(Patterns::parse("(").is_err());
        assert!(!Patterns::default().is_match(""));
    }

    #[test]
    fn platforms() {
        let parts = [("0_os", "linux"), ("0_architecture", "arm64")].into();
        let Platforms(platforms) = Platforms::parse_parts(&parts).unwrap();
        assert_eq!(platforms, [Platform::linux("arm64")]);
        for wrong in [("0_os", "linux"), ("0_variant", "v8")] {
            assert!(
                Platforms::parse_parts(&[wrong].into()).is_err(),
                "{wrong:?}"
            );
        }
    }
}
