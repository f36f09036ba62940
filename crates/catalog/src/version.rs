//! Semantic versions of bundles.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// Longest release. Units: bytes. Source: `opm validate`.
const MAX_RELEASE: usize = 20;

/// A semantic version: `1.2.3-pre.4+build`, always three numbers. Ordered by precedence: build metadata does not count,
/// so equal versions may print differently.
///
/// Source: semver.org 2.0.0; github.com/blang/semver/v4.
#[derive(Debug, Clone)]
pub struct BundleVersion(semver::Version);

/// Parse error of a version or range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionError(pub(crate) String);

impl BundleVersion {
    /// Whether the version has build metadata.
    pub fn has_build(&self) -> bool {
        !self.0.build.is_empty()
    }

    /// Build metadata; empty for none.
    pub fn build(&self) -> &str {
        self.0.build.as_str()
    }

    /// The first two numbers.
    pub fn major_and_minor(&self) -> (u64, u64) {
        (self.0.major, self.0.minor)
    }
}

impl FromStr for BundleVersion {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let version = semver::Version::parse(text).map_err(|e| VersionError(e.to_string()))?;
        check_identifiers(version.pre.as_str())?;
        Ok(Self(version))
    }
}

/// Numeric identifiers fit 64 bits.
fn check_identifiers(pre: &str) -> Result<(), VersionError> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    match pre
        .split('.')
        .find(|part| is_number(part) && part.parse::<u64>().is_err())
    {
        Some(part) => Err(VersionError(format!("{part} is too large a number"))),
        None => Ok(()),
    }
}

impl fmt::Display for BundleVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for BundleVersion {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for BundleVersion {}

impl PartialOrd for BundleVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BundleVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp_precedence(&other.0)
    }
}

/// Release of a version: dot-separated pre-release identifiers. No release is the lowest.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct BundleRelease(Option<semver::Prerelease>);

impl BundleRelease {
    /// Whether there is no release.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl FromStr for BundleRelease {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        if text.len() > MAX_RELEASE {
            let reason = format!("exceeds maximum length of {MAX_RELEASE} characters");
            return Err(VersionError(reason));
        }
        let identifiers = semver::Prerelease::new(text).map_err(|e| VersionError(e.to_string()))?;
        check_identifiers(text)?;
        Ok(Self(Some(identifiers)))
    }
}

impl fmt::Display for BundleRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |release| release.fmt(f))
    }
}

impl fmt::Display for VersionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for VersionError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> BundleVersion {
        text.parse().unwrap()
    }

    #[test]
    fn versions_are_ordered_by_precedence() {
        let ordered = [
            "0.9.0",
            "1.0.0-1",
            "1.0.0-2",
            "1.0.0-10",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0",
            "1.0.1",
        ];
        for pair in ordered.windows(2) {
            assert!(version(pair[0]) < version(pair[1]), "{pair:?}");
        }
        assert_eq!(version("1.0.0+a"), version("1.0.0+b"));
        assert_eq!(version("1.0.0-a+b.01").to_string(), "1.0.0-a+b.01");
    }

    #[test]
    fn malformed_versions_are_refused() {
        for wrong in [
            "",
            "1",
            "1.0",
            "v1.0.0",
            "01.0.0",
            "1.0.0-01",
            "1.0.0-",
            "1.0.0+",
            "1.0.0-a..b",
            "1.0.0-a_b",
            ".1.0",
            " 1.0.0",
            "18446744073709551616.0.0",
            "1.0.0-18446744073709551616",
        ] {
            assert!(wrong.parse::<BundleVersion>().is_err(), "{wrong:?}");
        }
        assert!(
            "1.0.0-18446744073709551615"
                .parse::<BundleVersion>()
                .is_ok()
        );
    }

    #[test]
    fn releases_are_ordered_and_bounded() {
        let release = |text: &str| text.parse::<BundleRelease>();
        assert!(release("").unwrap() < release("1").unwrap());
        assert!(release("2").unwrap() < release("10.a").unwrap());
        for wrong in ["01", "a..b", "a+b", "123456789012345678901"] {
            assert!(release(wrong).is_err(), "{wrong:?}");
        }
    }
}
