//! Support of one feature, as a row of the table.

use model::support::FeatureId;
use model::versions::CpuArchitecture;

use super::availability::{Availability, Levels, at};
use super::{MinorVersion, RequestedPlatform};

/// A feature: its levels, and the features that it excludes.
#[derive(Debug, Clone, Copy)]
pub struct FeatureSupport {
    /// Id on the wire.
    pub id: FeatureId,
    /// Name for messages.
    pub name: &'static str,
    /// Levels on x86_64, on any platform.
    levels: Levels,
    /// Levels on other architectures, where they differ.
    architectures: &'static [(&'static [CpuArchitecture], Levels)],
    /// Levels on platforms, where they differ.
    platforms: &'static [(&'static [RequestedPlatform], Levels)],
    excludes: &'static [FeatureId],
    /// Features that exclude it before that minor release of platform 4.
    excludes_before: (u64, &'static [FeatureId]),
}

pub(super) const fn row(id: FeatureId, name: &'static str, levels: Levels) -> FeatureSupport {
    FeatureSupport {
        id,
        name,
        levels,
        architectures: &[],
        platforms: &[],
        excludes: &[],
        excludes_before: (0, &[]),
    }
}

impl FeatureSupport {
    pub(super) const fn on(
        mut self,
        architectures: &'static [(&'static [CpuArchitecture], Levels)],
    ) -> Self {
        self.architectures = architectures;
        self
    }

    pub(super) const fn with(
        mut self,
        platforms: &'static [(&'static [RequestedPlatform], Levels)],
    ) -> Self {
        self.platforms = platforms;
        self
    }

    pub(super) const fn excludes(mut self, features: &'static [FeatureId]) -> Self {
        self.excludes = features;
        self
    }

    pub(super) const fn excludes_before(
        mut self,
        minor: u64,
        features: &'static [FeatureId],
    ) -> Self {
        self.excludes_before = (minor, features);
        self
    }

    /// Availability for a version, an architecture and, if given, a platform. The architecture's refusal is stronger
    /// than the platform's; where the architecture allows the feature, the platform decides.
    pub fn availability(
        &self,
        version: MinorVersion,
        architecture: CpuArchitecture,
        platform: Option<RequestedPlatform>,
    ) -> Availability {
        let mut exceptions = self.architectures.iter();
        let by_architecture = exceptions
            .find(|(list, _)| list.contains(&architecture))
            .map(|(_, levels)| at(levels, version));
        if let Some(refusal) = by_architecture.filter(|found| !found.is_usable()) {
            return refusal;
        }
        let by_platform = platform.and_then(|platform| {
            let mut exceptions = self.platforms.iter();
            exceptions.find(|(list, _)| list.contains(&platform))
        });
        by_platform
            .map(|(_, levels)| at(levels, version))
            .or(by_architecture)
            .unwrap_or_else(|| at(self.levels, version))
    }

    /// Features that cannot be active beside it in a version.
    pub fn excluded(&self, version: MinorVersion) -> impl Iterator<Item = FeatureId> + use<> {
        let (minor, before) = self.excludes_before;
        let before: &[FeatureId] = if version < MinorVersion::four(minor) {
            before
        } else {
            &[]
        };
        self.excludes.iter().chain(before).copied()
    }
}
