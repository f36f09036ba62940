//! What can be installed, and what this service is made of.

use std::collections::BTreeMap;

use model::versions::{ListVersions, OpenshiftVersion};
use rules::versions::Query;

use super::App;

impl App {
    /// The versions that can be installed: those of the release images, and those that the operator lists.
    pub(crate) fn versions(&self, query: &Query) -> BTreeMap<String, OpenshiftVersion> {
        let mut versions =
            rules::versions::listing(&self.offer.releases, &self.offer.os_images, query);
        for (selector, version) in &self.offer.platform_versions {
            let wanted = query.version.as_ref().is_none_or(|part| {
                selector.contains(part.as_str()) || version.display_name.contains(part.as_str())
            });
            if wanted {
                versions.insert(selector.clone(), version.clone());
            }
        }
        // The operator's list may name another default than the release images do: his word counts.
        let chosen = self
            .offer
            .platform_versions
            .iter()
            .find(|(_, version)| version.default);
        if let Some((selector, _)) = chosen {
            for (key, version) in &mut versions {
                version.default = key == selector;
            }
        }
        versions
    }

    /// Images and versions of the components.
    pub(crate) fn components(&self) -> ListVersions {
        let settings = &self.settings;
        let versions = [
            ("assisted-installer-service", &settings.self_version),
            ("discovery-agent", &settings.agent_docker_image),
            ("assisted-installer", &settings.installer_image),
            ("assisted-installer-controller", &settings.controller_image),
        ];
        ListVersions {
            versions: versions
                .map(|(name, image)| (name.to_owned(), image.clone()))
                .into(),
            release_tag: settings.release_tag.clone(),
        }
    }
}
