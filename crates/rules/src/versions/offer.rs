//! Versions that this service offers, and its default values.

use std::collections::{BTreeMap, BTreeSet};

use model::Error;
use model::infra_env::ImageType;
use model::release_payload::ComponentImages;
use model::versions::{CpuArchitecture, OpenshiftVersion, OsImage, ReleaseImage};

use super::find::{ResolvedRelease, release};
use crate::urls::registry_of;

/// First version whose live image has nmstate's service. Source: assisted-service,
/// pkg/staticnetworkconfig/backward_compatibility.go.
pub const NMSTATE_SERVICE_FROM: &str = "4.18";

/// Built once from the settings.
#[derive(Debug, Clone)]
pub struct Offer {
    /// `RELEASE_IMAGES`.
    pub releases: Vec<ReleaseImage>,
    /// `RELEASE_IMAGE_REGISTRIES`: accepted registries of release images that callers name; empty for those of `releases`.
    pub release_registries: Vec<String>,
    /// `OS_IMAGES`.
    pub os_images: Vec<OsImage>,
    /// `PLATFORM_VERSIONS`.
    pub platform_versions: BTreeMap<String, OpenshiftVersion>,
    /// `IGNORED_OPENSHIFT_VERSIONS`: full versions or `x.y`.
    pub ignored_versions: Vec<String>,
    /// Images of the settings that replace those of releases: pull secrets must cover their registries.
    pub components: ComponentImages,
    /// `PUBLIC_CONTAINER_REGISTRIES` and the locations of the mirror configuration: need no pull secret.
    pub public_registries: Vec<String>,
    /// `NTP_DEFAULT_SERVER`.
    pub ntp_default_server: String,
    /// `IMAGE_SERVICE_BASE_URL`.
    pub image_service_url: String,
    /// `ISO_IMAGE_TYPE`.
    pub image_type: ImageType,
    /// `TNA_CLUSTERS_SUPPORT`.
    pub two_nodes_with_arbiter: bool,
    /// `TNF_CLUSTERS_SUPPORT`.
    pub two_nodes_with_fencing: bool,
    /// `CHECK_CLUSTER_VERSION`: the installation waits for the cluster's version operator.
    pub check_cluster_version: bool,
    /// `MIN_VERSION_FOR_NMSTATE_SERVICE`: first version whose images apply nmstate configurations themselves.
    pub nmstate_service_from: String,
}

impl Default for Offer {
    fn default() -> Self {
        Self {
            releases: Vec::new(),
            release_registries: Vec::new(),
            os_images: Vec::new(),
            platform_versions: BTreeMap::new(),
            ignored_versions: Vec::new(),
            components: ComponentImages::default(),
            public_registries: Vec::new(),
            ntp_default_server: String::new(),
            image_service_url: String::new(),
            image_type: ImageType::FullIso,
            two_nodes_with_arbiter: true,
            two_nodes_with_fencing: false,
            check_cluster_version: false,
            nmstate_service_from: NMSTATE_SERVICE_FROM.to_owned(),
        }
    }
}

impl Offer {
    /// The release that a cluster of that version and architecture installs. An entry of `platform_versions` with this
    /// selector names it; else the version does.
    ///
    /// Errors: `Invalid` on `openshift_version` – as [`release`].
    pub fn release(
        &self,
        version: &str,
        wanted: CpuArchitecture,
    ) -> Result<ResolvedRelease, Error> {
        let entry = self.platform_versions.get(version);
        let named = entry.map_or(version, |entry| &entry.display_name);
        release(&self.releases, &self.ignored_versions, named, wanted)
    }

    /// The entries of `platform_versions` that have a release, with its architectures.
    pub fn listed_platform_versions(
        &self,
    ) -> impl Iterator<Item = (&String, OpenshiftVersion)> + use<'_> {
        self.platform_versions
            .iter()
            .filter_map(|(selector, entry)| {
                let cpu_architectures = self.architectures(entry);
                let entry = OpenshiftVersion {
                    cpu_architectures,
                    ..entry.clone()
                };
                (!entry.cpu_architectures.is_empty()).then_some((selector, entry))
            })
    }

    /// Selectors of `platform_versions` without a release, with the version that each names.
    pub fn missing_platform_versions(&self) -> impl Iterator<Item = (&str, &str)> {
        let entries = self.platform_versions.iter();
        let missing = entries.filter(|(_, entry)| self.architectures(entry).is_empty());
        missing.map(|(selector, entry)| (selector.as_str(), entry.display_name.as_str()))
    }

    /// The architectures of an entry that have a release which may be installed.
    fn architectures(&self, entry: &OpenshiftVersion) -> Vec<String> {
        let names = entry.cpu_architectures.iter();
        let has_release = |name: &&String| {
            let wanted = name.parse();
            let ignored = &self.ignored_versions;
            wanted.is_ok_and(|it| release(&self.releases, ignored, &entry.display_name, it).is_ok())
        };
        names.filter(has_release).cloned().collect()
    }

    /// Whether the operator lists the release image `image`.
    pub fn lists(&self, image: &str) -> bool {
        self.releases.iter().any(|release| release.url == image)
    }

    /// Whether the release image `image` may be installed without a signature: its installer runs on this service's
    /// machine.
    ///
    /// Errors: `Invalid` on `ocp_release_image` – neither listed nor from an accepted registry.
    pub fn check_release_image(&self, image: &str) -> Result<(), Error> {
        if self.lists(image) {
            return Ok(());
        }
        let registries: BTreeSet<&str> = if self.release_registries.is_empty() {
            let urls = self.releases.iter().map(|release| release.url.as_str());
            urls.map(registry_of).collect()
        } else {
            let hosts = self.release_registries.iter();
            hosts.map(String::as_str).collect()
        };
        let registry = registry_of(image);
        if registries
            .iter()
            .any(|known| known.eq_ignore_ascii_case(registry))
        {
            return Ok(());
        }
        let registries: Vec<&str> = registries.into_iter().collect();
        Err(Error::invalid(
            "ocp_release_image",
            format!(
                "unsigned release images come from [{}], not from {registry:?}: name an image there, or one by its \
                 digest that a key of RELEASE_KEYRING has signed; or have the operator add that registry to \
                 RELEASE_IMAGE_REGISTRIES, or the signer's key to RELEASE_KEYRING",
                registries.join(", ")
            ),
        ))
    }

    /// Whether clusters of two control plane machines are allowed in some form.
    pub fn two_nodes(&self) -> bool {
        self.two_nodes_with_arbiter || self.two_nodes_with_fencing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer() -> Offer {
        let image = |version: &str| ReleaseImage {
            openshift_version: "4.18".to_owned(),
            cpu_architecture: CpuArchitecture::X86_64,
            cpu_architectures: vec!["x86_64".to_owned()],
            url: format!("r.example/release:{version}"),
            version: version.to_owned(),
            ..ReleaseImage::default()
        };
        let entry = |version: &str| OpenshiftVersion {
            display_name: version.to_owned(),
            cpu_architectures: vec!["x86_64".to_owned(), "arm64".to_owned()],
            ..OpenshiftVersion::default()
        };
        Offer {
            releases: vec![image("4.18.3"), image("4.18.9")],
            platform_versions: BTreeMap::from([
                ("4.18".to_owned(), entry("4.18.3")),
                ("4.19".to_owned(), entry("4.19.4")),
            ]),
            ..Offer::default()
        }
    }

    #[test]
    fn a_selector_is_the_version_that_its_entry_names() {
        let version = |wanted: &str| {
            let found = offer().release(wanted, CpuArchitecture::X86_64);
            found.map(|it| it.version).map_err(|e| e.to_string())
        };
        assert_eq!(version("4.18").unwrap(), "4.18.3");
        assert_eq!(version("4.18.9").unwrap(), "4.18.9");
        assert!(version("4.19").unwrap_err().contains("4.19.4"));
        let newest = Offer {
            platform_versions: BTreeMap::new(),
            ..offer()
        };
        let found = newest.release("4.18", CpuArchitecture::X86_64);
        assert_eq!(found.unwrap().version, "4.18.9");
    }

    #[test]
    fn entries_are_listed_as_far_as_there_is_a_release() {
        let offer = offer();
        let listed: Vec<_> = offer.listed_platform_versions().collect();
        assert_eq!(listed.len(), 1);
        assert_eq!(
            (
                listed[0].0.as_str(),
                listed[0].1.cpu_architectures.as_slice()
            ),
            ("4.18", &["x86_64".to_owned()][..])
        );
        let missing: Vec<_> = offer.missing_platform_versions().collect();
        assert_eq!(missing, [("4.19", "4.19.4")]);
        let ignoring = Offer {
            ignored_versions: vec!["4.18.3".to_owned()],
            ..offer
        };
        assert_eq!(ignoring.listed_platform_versions().count(), 0);
    }
}
