//! Replaces image references in bundles.

use serde::Serialize;

use super::edit::Members;
use crate::Document;
use crate::schema::decode::decode;
use crate::schema::{BUNDLE, BundleDocument};

/// Related image with its members in the normal form's order.
#[derive(Serialize)]
struct Related<'a> {
    image: String,
    name: &'a str,
}

/// Replaces the images of a bundle's document for which `named` returns a reference; others stay.
pub fn pin(document: Document, named: impl Fn(&str) -> Option<String>) -> Document {
    match pinned(&document, named) {
        Some(json) => Document { json, ..document },
        None => document,
    }
}

fn pinned(document: &Document, named: impl Fn(&str) -> Option<String>) -> Option<String> {
    if document.schema != BUNDLE {
        return None;
    }
    let bundle: BundleDocument<'_> = decode(&document.json).ok()?;
    let related = bundle.related_images.iter().map(|related| &*related.image);
    if !related
        .chain([&*bundle.image])
        .any(|image| named(image).is_some())
    {
        return None;
    }
    let mut json = document.json.clone();
    if let Some(image) = named(&bundle.image) {
        json = Members::new(&json)?.with("image", &image);
    }
    let related = bundle.related_images.iter().map(|related| Related {
        image: named(&related.image).unwrap_or_else(|| related.image.to_string()),
        name: &related.name,
    });
    let related: Vec<_> = related.collect();
    if related.is_empty() {
        return Some(json);
    }
    Some(Members::new(&json)?.with("relatedImages", &related))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DocumentOrigin;

    #[test]
    fn references_are_replaced() {
        let document = |json: &str| Document {
            schema: BUNDLE.to_owned(),
            package: "p".to_owned(),
            name: "p.v1".to_owned(),
            json: json.to_owned(),
            origin: DocumentOrigin::new("f", 1),
        };
        let named = |image: &str| (image == "r/a:1").then(|| "r/a@sha256:0".to_owned());
        let both = r#"{"image":"r/a:1","name":"p.v1","relatedImages":[{"image":"r/b:1","name":""},{"image":"r/a:1","name":"a"}],"schema":"olm.bundle"}"#;
        assert_eq!(
            pin(document(both), named).json,
            r#"{"image":"r/a@sha256:0","name":"p.v1","relatedImages":[{"image":"r/b:1","name":""},{"image":"r/a@sha256:0","name":"a"}],"schema":"olm.bundle"}"#
        );
        let other = r#"{"image":"r/c","name":"p.v1","schema":"olm.bundle","x":1e2}"#;
        assert_eq!(pin(document(other), named).json, other);
    }
}
