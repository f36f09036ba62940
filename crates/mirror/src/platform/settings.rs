//! Where releases are asked for.

use model::image_set::ReleaseKind;
use regex::Regex;
use url::Url;

use crate::web::Web;

/// Update services of the public platforms. Source: the peer.
const OCP_UPDATES: &str = "https://api.openshift.com/api/upgrades_info/v1/graph";
const OKD_UPDATES: &str = "https://origin-release.ci.openshift.org/graph";

/// Where releases are asked for.
#[derive(Debug, Clone)]
pub struct Sources {
    pub web: Web,
    /// The update service, instead of the public ones.
    pub updates: Option<Url>,
    /// Which versions may be the ends of a channel.
    pub version_filter: Option<Regex>,
}

impl Sources {
    /// The update service of a platform.
    pub(super) fn updates_of(&self, kind: ReleaseKind) -> Url {
        let public = match kind {
            ReleaseKind::Ocp => OCP_UPDATES,
            ReleaseKind::Okd => OKD_UPDATES,
        };
        let own = self.updates.clone();
        own.unwrap_or_else(|| public.parse().expect("the public services have addresses"))
    }
}
