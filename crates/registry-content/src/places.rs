//! Places of the images of a release in the registry that holds its payload.

use oci::Reference;

/// Last part of the repository of payloads, and of the one that mirroring tools put their images into.
/// Source: openshift/oc-mirror, which mirrors payloads and components into two repositories.
const PAYLOADS: &str = "release-images";
const COMPONENTS: &str = "release";

/// Where the registry of `release` may have `image`, the most likely place first. Mirroring tools keep references in
/// payloads as they are, and put the images beside the payload, into its sibling, or below `namespace` under their own
/// path. Without a digest, an image is in no other place than its own.
pub fn places(image: &Reference, release: &Reference, namespace: &str) -> Vec<Reference> {
    let own = (image.registry == release.registry).then(|| image.clone());
    let Some(digest) = &image.digest else {
        return own.into_iter().collect();
    };
    let beside = release.without_version().with_digest(digest.clone());
    let repository = release.repository.as_str();
    let sibling = match repository.rsplit_once('/') {
        Some((folder, PAYLOADS)) => Some(format!("{folder}/{COMPONENTS}")),
        None if repository == PAYLOADS => Some(COMPONENTS.to_owned()),
        _ => None,
    };
    let path = image.repository.as_str();
    let below = match namespace {
        "" => path.to_owned(),
        namespace => format!("{namespace}/{path}"),
    };
    let moved = sibling.into_iter().chain([below]);
    let moved = moved.filter_map(|repository| {
        let repository = repository.parse().ok()?;
        Some(Reference {
            repository,
            ..beside.clone()
        })
    });
    let mut places: Vec<Reference> = own.into_iter().collect();
    for place in moved.chain([beside.clone()]) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_looked_for_where_mirroring_tools_put_them() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let found = |image: &str, release: &str, namespace: &str| {
            let (image, release) = (image.parse().unwrap(), release.parse().unwrap());
            let places = places(&image, &release, namespace).into_iter();
            let shown = places.map(|place| place.to_string().replace(&digest, "D"));
            shown.collect::<Vec<_>>()
        };
        let origin = format!("quay.io/ocp/art-dev@{digest}");
        assert_eq!(
            found(
                &origin,
                "r:5000/ns/openshift/release-images:4.18.7-x86_64",
                "ns"
            ),
            [
                "r:5000/ns/openshift/release@D",
                "r:5000/ns/ocp/art-dev@D",
                "r:5000/ns/openshift/release-images@D",
            ]
        );
        let own = format!("r:5000/openshift/release@{digest}");
        assert_eq!(
            found(&own, "r:5000/openshift/release:4.18.7-x86_64", ""),
            ["r:5000/openshift/release@D"]
        );
        assert_eq!(
            found("r:5000/a/b:1", "r:5000/c:4.18.7-x86_64", ""),
            ["r:5000/a/b:1"]
        );
        assert!(found("quay.io/a/b:1", "r:5000/c:4.18.7-x86_64", "").is_empty());
    }
}
