//! Support levels as the API lists them.
//!
//! Source: assisted-service, internal/featuresupport/feature_support_level.go,
//! internal/bminventory/inventory_v2_handlers.go.

use model::Error;
use model::cluster::PlatformType;
use model::support::{Feature, FeatureId, SupportLevel};
use model::versions::CpuArchitecture;

use super::{FEATURES, FeatureSupport, MinorVersion, RequestedPlatform, architectures, feature};
use crate::input::refuse;

/// Selection of support levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SupportQuery {
    /// Version of the platform.
    pub version: MinorVersion,
    /// Architecture of the cluster.
    pub architecture: CpuArchitecture,
    /// Platform of the cluster: its own features are left out of the listing.
    pub platform: Option<RequestedPlatform>,
}

impl SupportQuery {
    /// A query by the texts of a request.
    ///
    /// Errors: `Invalid` on `openshift_version` – malformed.
    pub fn new(
        version: &str,
        architecture: Option<CpuArchitecture>,
        platform: Option<PlatformType>,
        external_platform_name: Option<&str>,
    ) -> Result<Self, Error> {
        Ok(Self {
            version: version.parse().map_err(|_| {
                refuse(
                    "openshift_version",
                    version,
                    "is not a version: write 4.16 or 4.16.3",
                )
            })?,
            architecture: architecture.unwrap_or(CpuArchitecture::X86_64),
            platform: platform.map(|kind| RequestedPlatform::new(kind, external_platform_name)),
        })
    }

    /// Errors: `Invalid` on `cpu_architecture` or `platform_type` – the version does not support it.
    pub fn check(&self) -> Result<(), Error> {
        if !architectures::is_usable(self.architecture, self.version) {
            return Err(refuse(
                "cpu_architecture",
                self.architecture.as_str(),
                "is not supported in that version: choose another architecture or a later version",
            ));
        }
        let Some(platform) = self.platform else {
            return Ok(());
        };
        let row = feature(platform.feature());
        let is_usable = row.is_some_and(|row| {
            let found = row.availability(self.version, self.architecture, None);
            found.is_usable()
        });
        if is_usable {
            return Ok(());
        }
        let name = row.map_or("this platform", |row| row.name);
        Err(Error::invalid(
            "platform_type",
            format!(
                "{name} is not available in that version on {}: choose another platform or a later version",
                self.architecture
            ),
        ))
    }

    /// Whether a feature is usable, and excludes none of `others`.
    pub fn allows(&self, feature: &FeatureSupport, others: &[FeatureId]) -> bool {
        feature
            .availability(self.version, self.architecture, self.platform)
            .is_usable()
            && !feature
                .excluded(self.version)
                .any(|id| others.contains(&id))
    }

    /// Features of platforms are listed without a platform, and platform-managed networking with one.
    fn lists(&self, id: FeatureId) -> bool {
        if self.platform.is_some() {
            !RequestedPlatform::is_platform_feature(id)
        } else {
            id != FeatureId::PlatformManagedNetworking
        }
    }
}

/// Features with their support levels. An architecture that the version does not support makes all of them
/// unavailable.
pub fn features(query: &SupportQuery) -> Vec<Feature> {
    if !architectures::is_usable(query.architecture, query.version) {
        let unavailable = |row: &FeatureSupport| Feature {
            id: row.id,
            support_level: SupportLevel::Unavailable,
            ..Feature::default()
        };
        return FEATURES.iter().map(unavailable).collect();
    }
    let rows = FEATURES.iter().filter(|row| query.lists(row.id));
    rows.map(|row| {
        let found = row.availability(query.version, query.architecture, query.platform);
        let excluded = row.excluded(query.version);
        Feature {
            id: row.id,
            support_level: found.level,
            reason: found.reason,
            incompatibilities: excluded.filter(|id| query.lists(*id)).collect(),
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::detailed_features;

    fn query(version: &str, architecture: &str, platform: Option<&str>) -> SupportQuery {
        let (kind, name) = match platform {
            Some("oci") => (Some(PlatformType::External), Some("oci")),
            other => (other.map(|text| text.parse().unwrap()), None),
        };
        SupportQuery::new(version, Some(architecture.parse().unwrap()), kind, name).unwrap()
    }

    fn one(query: &SupportQuery, id: FeatureId) -> Option<Feature> {
        features(query).into_iter().find(|one| one.id == id)
    }

    /// Version, architecture, platform and feature; level and reason as the peer's service answers.
    #[rustfmt::skip]
    const LEVELS: &[(&str, &str)] = &[
        ("4.11 x86_64 - LVM", "dev-preview"),
        ("4.10.3 x86_64 - LVM", "unavailable openshiftVersion"),
        ("4.16 x86_64 vsphere LVM", "unavailable platform"),
        ("4.16 s390x vsphere LVM", "unavailable cpuArchitecture"),
        ("4.12 s390x - SNO", "unavailable cpuArchitecture"),
        ("4.13 s390x - SNO", "dev-preview"),
        ("4.14 arm64 - CNV", "dev-preview"),
        ("4.14 aarch64 nutanix CNV", "unavailable platform"),
        ("4.19.0-ec.2 x86_64 baremetal TNA", "tech-preview"),
        ("4.22 x86_64 none TNA", "supported"),
        ("4.21 x86_64 none TNA", "unavailable platform"),
        ("4.18 x86_64 oci FULL_ISO", "unavailable ociExternalIntegrationDisabled"),
        ("4.18 x86_64 oci PLATFORM_MANAGED_NETWORKING", "supported"),
        ("4.18 x86_64 external PLATFORM_MANAGED_NETWORKING", "unsupported platform"),
        ("4.9 arm64 - FULL_ISO", "unavailable"),
    ];

    #[test]
    fn levels_are_the_peers() {
        for (question, expected) in LEVELS {
            let [version, architecture, platform, id] =
                question.split(' ').collect::<Vec<_>>().try_into().unwrap();
            let platform = Some(platform).filter(|text| *text != "-");
            let found = one(&query(version, architecture, platform), id.parse().unwrap()).unwrap();
            let reason = found.reason.map(|reason| format!(" {reason}"));
            let text = format!("{}{}", found.support_level, reason.unwrap_or_default());
            assert_eq!(text, *expected, "{question}");
        }
    }

    #[test]
    fn every_feature_has_one_row() {
        let ids: Vec<FeatureId> = FEATURES.iter().map(|row| row.id).collect();
        assert_eq!(ids, FeatureId::ALL);
    }

    #[test]
    fn platform_features_are_listed_without_a_platform_alone() {
        let plain = query("4.18", "x86_64", None);
        assert!(one(&plain, FeatureId::BaremetalPlatform).is_some());
        assert!(one(&plain, FeatureId::PlatformManagedNetworking).is_none());
        let sno = one(&plain, FeatureId::Sno).unwrap();
        assert!(
            sno.incompatibilities
                .contains(&FeatureId::VsphereIntegration)
        );
        let with = query("4.18", "x86_64", Some("baremetal"));
        assert!(one(&with, FeatureId::BaremetalPlatform).is_none());
        let sno = one(&with, FeatureId::Sno).unwrap();
        assert!(
            !sno.incompatibilities
                .contains(&FeatureId::VsphereIntegration)
        );
    }

    #[test]
    fn operators_are_listed_apart_with_their_dependencies() {
        let response = detailed_features(&query("4.18", "x86_64", None)).unwrap();
        assert_eq!(
            (response.features.len(), response.operators.len()),
            (27, 28)
        );
        let of = |name: &str| {
            let found = response.operators.iter().find(|one| one.name == name);
            found.unwrap().dependencies.clone()
        };
        assert_eq!(of("openshift-ai"), [FeatureId::Lvm]);
        assert_eq!(
            of("amd-gpu"),
            [FeatureId::NodeFeatureDiscovery, FeatureId::Kmm]
        );
        assert!(of("lso").is_empty());
        assert!(detailed_features(&query("4.9", "arm64", None)).is_err());
        assert!(detailed_features(&query("4.10", "x86_64", Some("nutanix"))).is_err());
    }

    #[test]
    fn malformed_versions_are_refused() {
        assert!(SupportQuery::new("latest", None, None, None).is_err());
    }
}
