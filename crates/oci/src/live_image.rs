//! Live images as artifacts of a registry: one layer is the ISO 9660 image.

use model::Error;
use serde_json::json;

use crate::{Descriptor, Digest, Manifest, Repository, Tag, media_type};

/// Repository of live images below the namespace of a mirroring run, beside `openshift/release-images`.
pub const REPOSITORY: &str = "openshift/boot-images";
/// Architectures that live images are for, as their tags name them.
pub const ARCHITECTURES: [&str; 4] = ["x86_64", "aarch64", "ppc64le", "s390x"];

/// The annotation with the file name of a layer. Source: image-spec, annotations.
pub const TITLE: &str = "org.opencontainers.image.title";
/// The configuration of artifacts without one. Source: image-spec, guidance for an empty descriptor.
pub const CONFIG: &[u8] = b"{}";
const CONFIG_TYPE: &str = "application/vnd.oci.empty.v1+json";
const ARTIFACT_TYPE: &str = "application/vnd.atoll.live-image.v1";
const LAYER_TYPE: &str = "application/x-iso9660-image";

/// End of the name of a live image.
const EXTENSION: &str = ".iso";

/// An architecture as tags name it, of one as Go or the installer API names it.
pub fn architecture_of(name: &str) -> &str {
    match name {
        "amd64" => "x86_64",
        "arm64" => "aarch64",
        other => other,
    }
}

/// Tag of the live image for an architecture and a version: that of the operating system, or the minor version of releases.
///
/// Errors: Invalid – a malformed version.
pub fn tag(version: &str, architecture: &str) -> Result<Tag, Error> {
    format!("{version}-{}", architecture_of(architecture)).parse()
}

/// Whether a tag is one of [`tag`].
pub fn is_tag(tag: &Tag) -> bool {
    let architecture = tag.as_str().rsplit_once('-').map(|(_, it)| it);
    architecture.is_some_and(|it| ARCHITECTURES.contains(&it))
}

/// Whether a repository is one of live images, in any namespace.
pub fn is_repository(name: &str) -> bool {
    let namespace = name.strip_suffix(REPOSITORY);
    namespace.is_some_and(|it| it.is_empty() || it.ends_with('/'))
}

/// [`REPOSITORY`].
///
/// Errors: never: the name is valid.
pub fn repository() -> Result<Repository, Error> {
    REPOSITORY.parse()
}

/// Name of the file in a layer.
fn title(layer: &Descriptor) -> Option<&str> {
    let title = layer.annotations.as_ref()?.get(TITLE)?;
    Some(title.as_str())
}

/// Whether a layer is called as a live image.
pub fn is_image_layer(layer: &Descriptor) -> bool {
    title(layer).is_some_and(|title| title.ends_with(EXTENSION))
}

/// The layer with the live image: the only one, or the only one that is called so.
pub fn image_layer(layers: &[Descriptor]) -> Option<&Descriptor> {
    let named: Vec<_> = layers.iter().filter(|it| is_image_layer(it)).collect();
    match (layers, named.as_slice()) {
        ([layer], _) => Some(layer),
        (_, [layer]) => Some(layer),
        _ => None,
    }
}

/// Version of the operating system by the name of a layer's file: `418.94.1-0` of `rhcos-418.94.1-0-live.x86_64.iso`.
pub fn os_version(layer: &Descriptor) -> Option<&str> {
    let title = title(layer)?.trim_end_matches(EXTENSION);
    let version = title.rsplit_once("os-").map_or(title, |(_, rest)| rest);
    let version = version.split_once("-live").map_or(version, |(it, _)| it);
    Some(version).filter(|version| !version.is_empty())
}

/// The layer of an image of `size` bytes, in a file called `title`.
pub fn layer(digest: Digest, size: u64, title: String) -> Descriptor {
    Descriptor {
        media_type: LAYER_TYPE.to_owned(),
        digest,
        size,
        platform: None,
        annotations: Some([(TITLE.to_owned(), title)].into()),
    }
}

/// The manifest of an artifact with that layer, and with [`CONFIG`].
///
/// Errors: TooLarge – the title is.
pub fn manifest(layer: &Descriptor) -> Result<Manifest, Error> {
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": media_type::OCI_MANIFEST,
        "artifactType": ARTIFACT_TYPE,
        "config": {
            "mediaType": CONFIG_TYPE,
            "digest": Digest::sha256(CONFIG),
            "size": CONFIG.len(),
        },
        "layers": [layer],
    });
    Manifest::parse(manifest.to_string().into(), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titled(title: Option<&str>) -> Descriptor {
        Descriptor {
            media_type: String::new(),
            digest: Digest::sha256(title.unwrap_or_default().as_bytes()),
            size: 1,
            platform: None,
            annotations: title.map(|title| [(TITLE.to_owned(), title.to_owned())].into()),
        }
    }

    #[test]
    fn the_live_image_is_the_only_layer_or_has_its_name() {
        let (plain, notes) = (titled(None), titled(Some("notes.txt")));
        let (image, other) = (titled(Some("live.iso")), titled(Some("other.iso")));
        for (layers, expected) in [
            (vec![&plain], Some(&plain)),
            (vec![&notes, &image], Some(&image)),
            (vec![&image, &other], None),
            (vec![&plain, &notes], None),
            (vec![], None),
        ] {
            let layers: Vec<_> = layers.into_iter().cloned().collect();
            assert_eq!(image_layer(&layers), expected);
        }
    }

    #[test]
    fn the_operating_system_is_in_the_title() {
        for (title, expected) in [
            ("rhcos-418.94.1-0-live.x86_64.iso", Some("418.94.1-0")),
            ("scos-9.0.1-0-live-iso.x86_64.iso", Some("9.0.1-0")),
            ("rhcos-418.94.1-0.iso", Some("418.94.1-0")),
            ("own.iso", Some("own")),
            (".iso", None),
        ] {
            assert_eq!(os_version(&titled(Some(title))), expected, "{title}");
        }
    }

    #[test]
    fn names_of_live_images_are_recognised() {
        assert_eq!(tag("4.18", "arm64").unwrap().as_str(), "4.18-aarch64");
        for (name, expected) in [
            ("418.94.1-0-s390x", true),
            ("4.18-x86_64", true),
            ("4.18-sparc", false),
            ("4.18-arm64", false),
            ("latest", false),
        ] {
            assert_eq!(is_tag(&name.parse().unwrap()), expected, "{name}");
        }
        assert!(is_repository("openshift/boot-images"));
        assert!(is_repository("ns/openshift/boot-images"));
        assert!(!is_repository("myopenshift/boot-images"));
        assert_eq!(repository().unwrap().as_str(), REPOSITORY);
    }

    #[test]
    fn artifacts_keep_their_form() {
        let layer = layer(Digest::sha256(b"image"), 5, "live.iso".to_owned());
        let manifest = manifest(&layer).unwrap();
        // Another form gives known images another digest: they would be mirrored again.
        assert_eq!(
            str::from_utf8(&manifest.bytes).unwrap(),
            concat!(
                r#"{"artifactType":"application/vnd.atoll.live-image.v1","config":{"#,
                r#""digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","#,
                r#""mediaType":"application/vnd.oci.empty.v1+json","size":2},"#,
                r#""layers":[{"annotations":{"org.opencontainers.image.title":"live.iso"},"#,
                r#""digest":"sha256:6105d6cc76af400325e94d588ce511be5bfdbb73b437dc51eca43917d7a43e3d","#,
                r#""mediaType":"application/x-iso9660-image","size":5}],"#,
                r#""mediaType":"application/vnd.oci.image.manifest.v1+json","schemaVersion":2}"#
            )
        );
    }
}
