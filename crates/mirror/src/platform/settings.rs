//! Where releases are asked for.

use model::image_set::ReleaseKind;
use regex::Regex;
use url::Url;

use super::keyring::Keyring;
use crate::web::Web;

/// Update services of the public platforms. Source: the peer.
const OCP_UPDATES: &str = "https://api.openshift.com/api/upgrades_info/v1/graph";
const OKD_UPDATES: &str = "https://origin-release.ci.openshift.org/graph";

/// Where the signatures of the public platform are. Source: the peer.
const SIGNATURES: [&str; 2] = [
    "https://storage.googleapis.com/openshift-release/official/signatures/openshift/release",
    "https://mirror.openshift.com/pub/openshift-v4/signatures/openshift/release",
];

/// Where releases are asked for.
#[derive(Debug, Clone)]
pub struct Sources {
    pub web: Web,
    /// The update service, instead of the public ones.
    pub updates: Option<Url>,
    /// Which versions may be the ends of a channel.
    pub version_filter: Option<Regex>,
    /// Where signatures of releases are, in the order in which they are asked.
    pub signature_stores: Vec<Url>,
    /// Whose signatures count.
    pub keyring: Option<Keyring>,
    /// Whether releases are carried that nobody has signed.
    pub ignores_signatures: bool,
}

/// Where the signatures of the public platform are.
pub fn public_signature_stores() -> Vec<Url> {
    SIGNATURES.map(public).into()
}

fn public(address: &str) -> Url {
    address.parse().expect("public services have addresses")
}

impl Sources {
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
