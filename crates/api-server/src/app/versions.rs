//! Installable versions, and versions of the components.

use std::collections::BTreeMap;

use model::versions::{ListVersions, OpenshiftVersion};
use rules::Offer;
use rules::versions::Query;

use crate::settings::Settings;

/// Installable versions: those of the release images, and those of the setting PLATFORM_VERSIONS.
pub(crate) fn versions(offer: &Offer, query: &Query) -> BTreeMap<String, OpenshiftVersion> {
    let mut versions = rules::versions::listing(&offer.releases, &offer.os_images, query);
    for (selector, mut version) in offer.listed_platform_versions() {
        let (images, architectures) = (&offer.os_images, &version.cpu_architectures);
        version.os_streams =
            rules::versions::os_streams(images, &version.display_name, architectures);
        let matches = query.version.as_ref().is_none_or(|part| {
            selector.contains(part.as_str()) || version.display_name.contains(part.as_str())
        });
        if matches {
            versions.insert(selector.clone(), version);
        }
    }
    // The default of PLATFORM_VERSIONS overrides that of the release images.
    let mut listed = offer.listed_platform_versions();
    if let Some((selector, _)) = listed.find(|(_, version)| version.default) {
        for (key, version) in &mut versions {
            version.default = key == selector;
        }
    }
    versions
}

/// Images and versions of the components; those that each release brings along are left out.
pub(crate) fn components(settings: &Settings) -> ListVersions {
    let versions = [
        ("assisted-installer-service", &settings.self_version),
        ("discovery-agent", &settings.agent_docker_image),
        ("assisted-installer", &settings.installer_image),
        ("assisted-installer-controller", &settings.controller_image),
    ];
    let versions = versions.into_iter().filter(|(_, image)| !image.is_empty());
    ListVersions {
        versions: versions
            .map(|(name, image)| (name.to_owned(), image.clone()))
            .collect(),
        release_tag: settings.release_tag.clone(),
    }
}
