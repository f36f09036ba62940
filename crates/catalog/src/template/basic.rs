//! Basic templates: documents of a catalog, in which bundles have an image only.

use located_yaml::v1_1::Located;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::fields::{Bundles, Misfit, TemplateImage, filled, list, member, members};
use crate::schema::decode::decode;
use crate::schema::{
    BUNDLE, BundleDocument, CHANNEL, ChannelDocument, DEPRECATIONS, DeprecationsDocument, PACKAGE,
    PackageDocument,
};
use crate::{Document, DocumentOrigin, read};

/// Schema of basic templates.
pub(super) const BASIC: &str = "olm.template.basic";

/// A basic template.
#[derive(Debug)]
pub(super) struct BasicTemplate(Vec<BasicEntry>);

#[derive(Debug)]
enum BasicEntry {
    Bundle(TemplateImage),
    Document(Document),
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entries<'a> {
    #[serde(borrow)]
    entries: Vec<&'a RawValue>,
}

impl BasicTemplate {
    pub(super) fn read(root: &Located, document: &Document, first: usize) -> Result<Self, Misfit> {
        let each = entries(root, document, first)?.into_iter();
        let each = each.map(|(located, document)| {
            if document.schema == BUNDLE {
                bundle_image(located, &document).map(BasicEntry::Bundle)
            } else {
                Ok(BasicEntry::Document(document))
            }
        });
        each.collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn images(&self) -> impl Iterator<Item = &TemplateImage> {
        self.0.iter().filter_map(|entry| match entry {
            BasicEntry::Bundle(image) => Some(image),
            BasicEntry::Document(_) => None,
        })
    }

    pub(super) fn expand(&self, bundles: &Bundles) -> Vec<Document> {
        let each = self.0.iter().filter_map(|entry| match entry {
            BasicEntry::Bundle(named) => bundles.get(&named.image).map(|it| it.document.clone()),
            BasicEntry::Document(document) => Some(document.clone()),
        });
        each.collect()
    }

    pub(super) fn shift(&mut self, lines: usize) {
        for entry in &mut self.0 {
            if let BasicEntry::Bundle(named) = entry {
                named.place.line += lines;
            }
        }
    }
}

/// The documents in `entries` with their places; the template begins at the line `first`.
pub(super) fn entries<'a>(
    root: &'a Located,
    document: &Document,
    first: usize,
) -> Result<Vec<(&'a Located, Document)>, Misfit> {
    let places = list(member(members(root, "a template")?, "entries"), "entries")?;
    let wrong = |why: String| Misfit::new(root.place, why);
    let Entries { entries } = decode(&document.json).map_err(wrong)?;
    if entries.len() != places.len() {
        return Err(wrong("entries is there twice".to_owned()));
    }
    let each = places.iter().zip(entries).map(|(located, json)| {
        let line = (first - 1 + located.place.line) as u64;
        let origin = DocumentOrigin {
            line,
            ..document.origin.clone()
        };
        let document = read::document(json.get(), origin);
        let document = document.map_err(|why| Misfit::new(located.place, why))?;
        decodable(&document).map_err(|why| Misfit::new(located.place, why))?;
        Ok((located, document))
    });
    each.collect()
}

/// Decodes a document of a core schema.
fn decodable(document: &Document) -> Result<(), String> {
    let json = &document.json;
    let decoded = match document.schema.as_str() {
        PACKAGE => decode::<PackageDocument<'_>>(json).map(drop),
        CHANNEL => decode::<ChannelDocument<'_>>(json).map(drop),
        BUNDLE => decode::<BundleDocument<'_>>(json).map(drop),
        DEPRECATIONS => decode::<DeprecationsDocument<'_>>(json).map(drop),
        _ => Ok(()),
    };
    decoded.map_err(|e| format!("parse {} {:?}: {e}", document.schema, document.name))
}

/// The image of a bundle entry.
fn bundle_image(located: &Located, document: &Document) -> Result<TemplateImage, Misfit> {
    let bundle: BundleDocument<'_> =
        decode(&document.json).map_err(|why| Misfit::new(located.place, why))?;
    let has_image_alone = document.package.is_empty()
        && bundle.properties.is_empty()
        && bundle.related_images.is_empty();
    if !has_image_alone {
        let why = "a bundle of a basic template has its schema and image only; the other members come from the image";
        return Err(Misfit::new(located.place, why));
    }
    let found = member(members(located, "a bundle")?, "image");
    filled(found, located.place, "the image of a bundle")
}
