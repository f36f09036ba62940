//! Images that a bundle names.

use crate::Document;
use crate::schema::decode::decode;
use crate::schema::{BUNDLE, BundleDocument};

/// The image of a bundle and its related images, as they are written; none of other documents. Names may be empty.
///
/// Errors: a mismatch, with its path.
pub fn bundle_images(document: &Document) -> Result<Vec<String>, String> {
    if document.schema != BUNDLE {
        return Ok(Vec::new());
    }
    let bundle: BundleDocument<'_> = decode(&document.json)?;
    let related = bundle.related_images.into_iter().map(|it| it.image);
    Ok(related
        .chain([bundle.image])
        .map(std::borrow::Cow::into_owned)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DocumentOrigin;

    #[test]
    fn bundles_name_images() {
        let of = |schema: &str, json: &str| {
            bundle_images(&Document {
                schema: schema.to_owned(),
                package: "p".to_owned(),
                name: "p.v1".to_owned(),
                json: json.to_owned(),
                origin: DocumentOrigin::new("f", 1),
            })
        };
        let bundle = r#"{"image":"r/a@sha256:0","relatedImages":[{"image":"r/b:1","name":""}]}"#;
        assert_eq!(of(BUNDLE, bundle).unwrap(), ["r/b:1", "r/a@sha256:0"]);
        assert_eq!(of(BUNDLE, r#"{"relatedImages":null}"#).unwrap(), [""]);
        assert!(of(BUNDLE, r#"{"image":[]}"#).is_err());
        assert!(of("olm.channel", bundle).unwrap().is_empty());
    }
}
