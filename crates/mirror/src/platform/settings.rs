//! Sources of releases.

use model::image_set::ReleaseKind;
use net::web::Web;
use oci::Reference;
use oci_client::signature::{Keyring, SignatureStore};
use regex::Regex;
use url::Url;

/// Update services of the public platforms. Source: the peer.
const OCP_UPDATES: &str = "https://api.openshift.com/api/upgrades_info/v1/graph";
const OKD_UPDATES: &str = "https://origin-release.ci.openshift.org/graph";

/// Update services and other sources of releases.
#[derive(Debug, Clone)]
pub struct ReleaseSources {
    pub web: Web,
    /// The update service, instead of the public ones.
    pub updates: Option<Url>,
    /// Filter of versions that may be implicit ends of a channel.
    pub version_filter: Option<Regex>,
    /// Signature stores of releases, in the order of queries.
    pub signature_stores: Vec<SignatureStore>,
    /// Trusted keys.
    pub keyring: Option<Keyring>,
    /// Whether unsigned releases are mirrored.
    pub ignores_signatures: bool,
    /// The data of the upgrade graph: an archive of files, compressed.
    pub graph_data: Url,
    /// The image that the data is put into, which a cluster runs: it has `bash` and `cp`.
    pub graph_base: Reference,
}

/// The data of the public upgrade graph, and the image that it is put into. Source: the peer.
const GRAPH_DATA: &str = "https://api.openshift.com/api/upgrades_info/graph-data";
const GRAPH_BASE: &str = "registry.access.redhat.com/ubi8/ubi-micro:latest";

/// The data of the public upgrade graph.
pub fn public_graph_data() -> Url {
    public(GRAPH_DATA)
}

/// The image that the data is put into where no other is named.
pub fn usual_graph_base() -> Reference {
    GRAPH_BASE.parse().expect("the usual base is a reference")
}

fn public(address: &str) -> Url {
    address.parse().expect("public services have addresses")
}

impl ReleaseSources {
    /// The update service of a platform.
    pub(super) fn updates_of(&self, kind: ReleaseKind) -> Url {
        let public = match kind {
            ReleaseKind::Ocp => OCP_UPDATES,
            ReleaseKind::Okd => OKD_UPDATES,
        };
        let own = self.updates.clone();
        own.unwrap_or_else(|| self::public(public))
    }
}
