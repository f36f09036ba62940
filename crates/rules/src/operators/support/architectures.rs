//! Support levels of architectures.
//!
//! Source: assisted-service, internal/featuresupport/architectures.go.

use std::collections::BTreeMap;

use model::support::{ArchitectureId, SupportLevel};
use model::versions::CpuArchitecture;

use super::MinorVersion;
use super::availability::{Levels, NO, OK, TECH, at};

/// Levels of each architecture, by minor release.
static ARCHITECTURES: &[(ArchitectureId, Levels)] = &[
    (ArchitectureId::X86_64Architecture, &[(0, OK)]),
    (ArchitectureId::Arm64Architecture, &[(0, NO), (10, OK)]),
    (
        ArchitectureId::Ppc64leArchitecture,
        &[(0, NO), (12, TECH), (13, OK)],
    ),
    (
        ArchitectureId::S390xArchitecture,
        &[(0, NO), (12, TECH), (13, OK)],
    ),
    (
        ArchitectureId::MultiarchReleaseImage,
        &[(0, NO), (11, TECH)],
    ),
];

/// The id of an architecture; both spellings of ARM have the same.
pub const fn architecture_id(architecture: CpuArchitecture) -> ArchitectureId {
    match architecture {
        CpuArchitecture::X86_64 => ArchitectureId::X86_64Architecture,
        CpuArchitecture::Aarch64 | CpuArchitecture::Arm64 => ArchitectureId::Arm64Architecture,
        CpuArchitecture::Ppc64le => ArchitectureId::Ppc64leArchitecture,
        CpuArchitecture::S390x => ArchitectureId::S390xArchitecture,
        CpuArchitecture::Multi => ArchitectureId::MultiarchReleaseImage,
    }
}

/// Levels of all architectures in a version.
pub fn architectures(version: MinorVersion) -> BTreeMap<ArchitectureId, SupportLevel> {
    let rows = ARCHITECTURES.iter();
    rows.map(|(id, levels)| (*id, at(levels, version).level))
        .collect()
}

/// Whether a version runs on an architecture.
pub(super) fn is_usable(architecture: CpuArchitecture, version: MinorVersion) -> bool {
    let id = architecture_id(architecture);
    let row = ARCHITECTURES.iter().find(|(known, _)| *known == id);
    row.is_some_and(|(_, levels)| at(levels, version).is_usable())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_architecture_has_levels() {
        let now = architectures(MinorVersion::four(12));
        assert_eq!(now.len(), ArchitectureId::ALL.len());
        assert_eq!(
            now[&ArchitectureId::S390xArchitecture],
            SupportLevel::TechPreview
        );
        assert_eq!(
            now[&ArchitectureId::Arm64Architecture],
            SupportLevel::Supported
        );
        let old = architectures(MinorVersion::four(9));
        assert_eq!(
            old[&ArchitectureId::Arm64Architecture],
            SupportLevel::Unavailable
        );
        assert_eq!(
            old[&ArchitectureId::X86_64Architecture],
            SupportLevel::Supported
        );
    }
}
