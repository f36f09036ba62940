//! Availability of container images on a host, as its agent reported it.

use std::collections::BTreeMap;

use model::host::Host;
use model::steps::{ContainerImageAvailability, ContainerImageAvailabilityResult};

use crate::hardware::check_outcome::CheckOutcome;

/// Below this rate an image counts as not available. Units: 10^6 bytes per second.
const LEAST_RATE: f64 = 0.001;

/// Parses `images_status`: results by image.
pub fn image_statuses(host: &Host) -> BTreeMap<String, ContainerImageAvailability> {
    serde_json::from_str(&host.images_status).unwrap_or_default()
}

/// Whether an image can be used.
/// Source: assisted-service, internal/host/validator.go, isInvalidImageStatus.
pub fn is_available(image: &ContainerImageAvailability) -> bool {
    let failed = image.result == Some(ContainerImageAvailabilityResult::Failure);
    let crawling = image.size_bytes > 0.0 && image.download_rate < LEAST_RATE;
    !failed && !crawling
}

/// Result of the image check so far.
pub(crate) fn images_outcome(host: &Host) -> CheckOutcome {
    let images = image_statuses(host);
    if images.is_empty() {
        CheckOutcome::Unknown
    } else if images.values().all(is_available) {
        CheckOutcome::Good
    } else {
        CheckOutcome::Failed
    }
}

/// Images that cannot be used.
pub(crate) fn failed_images(host: &Host) -> Vec<String> {
    let images = image_statuses(host).into_iter();
    images
        .filter(|(_, image)| !is_available(image))
        .map(|(name, _)| name)
        .collect()
}

/// Keeps only the available images, so that the others are pulled again.
pub(crate) fn clear_failed_images(host: &mut Host) {
    let mut images = image_statuses(host);
    images.retain(|_, image| is_available(image));
    host.images_status = if images.is_empty() {
        String::new()
    } else {
        serde_json::to_string(&images).unwrap_or_default()
    };
}
