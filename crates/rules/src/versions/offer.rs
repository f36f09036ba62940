//! Versions that this service offers, and its default values.

use std::collections::{BTreeMap, BTreeSet};

use model::Error;
use model::infra_env::ImageType;
use model::versions::{OpenshiftVersion, OsImage, ReleaseImage};

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
    /// `AGENT_DOCKER_IMAGE`, `INSTALLER_IMAGE`, `CONTROLLER_IMAGE`: pull secrets must cover their registries.
    pub component_images: Vec<String>,
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
            component_images: Vec::new(),
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
