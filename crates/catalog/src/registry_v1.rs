//! Bundles of the format registry+v1: folders with manifests and metadata, which become `olm.bundle` documents.
//!
//! Source: operator-registry, `pkg/registry/parse.go`, `pkg/registry/registry_to_model.go`, `alpha/action/render.go`.

mod csv;
mod folder;
mod manifests;
mod metadata;
mod migration;
mod properties;
#[cfg(test)]
mod tests;
mod yaml;

use serde::Serialize;

use self::manifests::Manifests;
use self::metadata::Metadata;
use self::properties::{Properties, PropertyOutput};
use crate::csv::to_json;
use crate::normal::normalised;
use crate::schema::{BUNDLE, RelatedImage};
use crate::{Document, DocumentOrigin};

pub use self::csv::CsvIcon;
pub use self::folder::{BYTES_LIMIT, BundleFile, BundleFolder, FILES_LIMIT};
pub use self::migration::with_csv_metadata;

/// Label of bundle images: the package.
pub const PACKAGE_LABEL: &str = "operators.operatorframework.io.bundle.package.v1";

/// A bundle as document, with the texts that a package takes from its head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedBundle {
    pub document: Document,
    /// Description in the CSV; empty when absent.
    pub description: String,
    pub icon: Option<CsvIcon>,
    /// Warnings: files that are left out.
    pub notes: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BundleOutput<'a> {
    schema: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    package: &'a str,
    image: &'a str,
    properties: Vec<PropertyOutput<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_images: Vec<RelatedImage<'a>>,
}

/// Renders the bundle in `folder`, which is in the bundle image `image`; empty for none.
///
/// Errors: no bundle, or contradictory content, with the file where one is at fault.
pub fn render(
    folder: &BundleFolder,
    image: &str,
    origin: &DocumentOrigin,
) -> Result<RenderedBundle, String> {
    let mut notes = Vec::new();
    let manifests = Manifests::read(&folder.manifests, &mut notes)?;
    let metadata = Metadata::read(&folder.metadata)?;
    let csv = manifests.csv()?;
    let properties = Properties::of(&manifests, &csv, &metadata)?;
    let output = BundleOutput {
        schema: BUNDLE,
        name: &csv.metadata.name,
        package: &metadata.package,
        image,
        properties: properties.output()?,
        related_images: csv.related_images(image),
    };
    let json = normalised(&to_json(&output)).map_err(|e| e.to_string())?;
    Ok(RenderedBundle {
        document: Document {
            schema: BUNDLE.to_owned(),
            package: metadata.package.clone(),
            name: csv.metadata.name.clone().into_owned(),
            json,
            origin: origin.clone(),
        },
        description: csv.description(),
        icon: csv.icon(),
        notes,
    })
}
