//! Minor releases of the platform, which support levels depend on.

use std::str::FromStr;

use crate::versions::{MalformedVersion, Number};

/// Major and minor part of a platform version: support levels ignore the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MinorVersion {
    major: u64,
    minor: u64,
}

impl MinorVersion {
    /// Release 4.`minor`: tables name releases of platform 4 by their minor part.
    pub const fn four(minor: u64) -> Self {
        Self { major: 4, minor }
    }
}

/// Errors: `MalformedVersion` – neither `x.y` nor `x.y.z` with an optional suffix.
impl FromStr for MinorVersion {
    type Err = MalformedVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number: Number = text.parse()?;
        Ok(Self {
            major: number.major,
            minor: number.minor,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_and_suffixes_are_ignored() {
        for text in [
            "4.16",
            "4.16.3",
            "4.16.0-ec.2",
            "4.16-multi",
            "4.16.3-multi",
        ] {
            assert_eq!(text.parse(), Ok(MinorVersion::four(16)), "{text}");
        }
        assert!("5.0".parse::<MinorVersion>().unwrap() > MinorVersion::four(99));
        assert!("latest".parse::<MinorVersion>().is_err());
    }
}
