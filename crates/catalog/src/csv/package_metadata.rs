//! Description and icon of a package.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{Quoted, to_json};
use crate::Document;
use crate::schema::PackageDocument;
use crate::schema::decode::decode;

/// Description and icon of a package, which are served with each of its bundles.
#[derive(Debug, Default)]
pub struct PackageMetadata {
    description: Option<Box<RawValue>>,
    /// At most one.
    pub(super) icon: Vec<Picture>,
}

#[derive(Debug, Serialize)]
pub(super) struct Picture {
    base64data: String,
    mediatype: String,
}

impl PackageMetadata {
    /// Reads a package's document; empty when it is invalid, which assembling the package reports.
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
