//! What a package shows of itself.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{Quoted, to_json};
use crate::Document;
use crate::schema::PackageDocument;
use crate::schema::decode::decode;

/// What a package shows of itself with each of its bundles.
#[derive(Debug, Default)]
pub struct PackageMetadata {
    description: Option<Box<RawValue>>,
    /// One at most.
    pub(super) icon: Vec<Picture>,
}

#[derive(Debug, Serialize)]
pub(super) struct Picture {
    base64data: String,
    mediatype: String,
}

impl PackageMetadata {
    /// Of a package's document; nothing is shown where it cannot be read, as will be told when the package is assembled.
    pub fn new(document: &Document) -> Self {
        let document: PackageDocument<'_> = decode(&document.json).unwrap_or_default();
        let icon = document.icon.into_iter().map(|icon| Picture {
            base64data: BASE64_STANDARD.encode(icon.data),
            mediatype: icon.media_type.into_owned(),
        });
        Self {
            description: RawValue::from_string(to_json(&document.description)).ok(),
            icon: icon.collect(),
        }
    }

    pub(super) fn description(&self) -> Quoted<'_> {
        self.description
            .as_deref()
            .map(Quoted::new)
            .unwrap_or_default()
    }
}
