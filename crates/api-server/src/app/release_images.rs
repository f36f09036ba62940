//! Release images on offer: those of the settings, else those of the registry.

use model::versions::OfferedRelease;
use registry_content::offered_releases;

use super::offer::CurrentOffer;

/// All release images; those of the registry with the images that they lack.
pub(crate) fn list(offer: &CurrentOffer) -> Vec<OfferedRelease> {
    let own = offer.own_releases();
    if own.is_empty() {
        return offered_releases(&offer.content());
    }
    let own = own.into_iter().map(|image| OfferedRelease {
        image,
        ..OfferedRelease::default()
    });
    own.collect()
}
