//! Availability of a feature: its level, and the reason for an unavailable one.

use model::support::{IncompatibilityReason, SupportLevel};

use super::MinorVersion;

/// Support level of a feature, and the reason if it is not available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Availability {
    /// Level on the wire.
    pub level: SupportLevel,
    /// Cause of an unavailable or unsupported feature, where one is known.
    pub reason: Option<IncompatibilityReason>,
}

/// Availabilities by minor release of platform 4, each from its release on, ascending.
pub type Levels = &'static [(u64, Availability)];

impl Availability {
    /// Whether the feature can be used.
    pub const fn is_usable(self) -> bool {
        self.level.is_usable()
    }
}

const fn with(level: SupportLevel, reason: Option<IncompatibilityReason>) -> Availability {
    Availability { level, reason }
}

pub(super) const OK: Availability = with(SupportLevel::Supported, None);
pub(super) const TECH: Availability = with(SupportLevel::TechPreview, None);
pub(super) const DEV: Availability = with(SupportLevel::DevPreview, None);
/// Unavailable for no stated reason: the architecture itself is not.
pub(super) const NO: Availability = with(SupportLevel::Unavailable, None);
pub(super) const NO_ARCHITECTURE: Availability = with(
    SupportLevel::Unavailable,
    Some(IncompatibilityReason::CpuArchitecture),
);
pub(super) const NO_PLATFORM: Availability = with(
    SupportLevel::Unavailable,
    Some(IncompatibilityReason::Platform),
);
pub(super) const NO_VERSION: Availability = with(
    SupportLevel::Unavailable,
    Some(IncompatibilityReason::OpenshiftVersion),
);
pub(super) const NO_OCI: Availability = with(
    SupportLevel::Unavailable,
    Some(IncompatibilityReason::OciExternalIntegrationDisabled),
);
pub(super) const UNSUPPORTED_PLATFORM: Availability = with(
    SupportLevel::Unsupported,
    Some(IncompatibilityReason::Platform),
);

/// The entry of the newest release that is not above `version`; the first one for older versions.
pub(super) fn at(levels: Levels, version: MinorVersion) -> Availability {
    let newest = levels
        .iter()
        .rev()
        .find(|(minor, _)| MinorVersion::four(*minor) <= version);
    newest.or(levels.first()).map_or(NO, |(_, found)| *found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_hold_from_their_release_on() {
        let levels: Levels = &[(8, NO_VERSION), (11, DEV), (12, OK)];
        for (minor, expected) in [
            (6, NO_VERSION),
            (8, NO_VERSION),
            (10, NO_VERSION),
            (11, DEV),
            (12, OK),
            (30, OK),
        ] {
            assert_eq!(at(levels, MinorVersion::four(minor)), expected, "4.{minor}");
        }
        assert_eq!(at(levels, "5.0".parse().unwrap()), OK);
    }
}
