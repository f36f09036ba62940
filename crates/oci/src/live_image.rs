//! Live images as artifacts of a registry: one layer is the ISO 9660 image.

use model::Error;
use serde_json::json;

use crate::{Descriptor, Digest, Manifest, media_type};

/// The annotation with the file name of a layer. Source: image-spec, annotations.
pub const TITLE: &str = "org.opencontainers.image.title";
/// The configuration of artifacts without one. Source: image-spec, guidance for an empty descriptor.
pub const CONFIG: &[u8] = b"{}";
const CONFIG_TYPE: &str = "application/vnd.oci.empty.v1+json";
const ARTIFACT_TYPE: &str = "application/vnd.atoll.live-image.v1";
const LAYER_TYPE: &str = "application/x-iso9660-image";

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
