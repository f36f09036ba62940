//! What this service offers, and what it fills in when a user says nothing.

use std::collections::BTreeMap;

use model::infra_env::ImageType;
use model::versions::{OpenshiftVersion, OsImage, ReleaseImage};

/// Built once from the settings, read by everything that creates or changes records.
#[derive(Debug, Clone)]
pub struct Offer {
    /// `RELEASE_IMAGES`.
    pub releases: Vec<ReleaseImage>,
    /// `OS_IMAGES`.
    pub os_images: Vec<OsImage>,
    /// `PLATFORM_VERSIONS`.
    pub platform_versions: BTreeMap<String, OpenshiftVersion>,
    /// `IGNORED_OPENSHIFT_VERSIONS`: full versions or `x.y`.
    pub ignored_versions: Vec<String>,
    /// `AGENT_DOCKER_IMAGE`, `INSTALLER_IMAGE`, `CONTROLLER_IMAGE`: pull secrets must open their registries.
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
    /// `CHECK_CLUSTER_VERSION`: the cluster's own version operator is waited for.
    pub check_cluster_version: bool,
}

impl Default for Offer {
    fn default() -> Self {
        Self {
            releases: Vec::new(),
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
        }
    }
}

impl Offer {
    /// Whether clusters of two control plane machines are allowed in some form.
    pub fn two_nodes(&self) -> bool {
        self.two_nodes_with_arbiter || self.two_nodes_with_fencing
    }
}
