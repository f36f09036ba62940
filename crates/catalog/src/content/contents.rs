//! Manifests of bundles.

use std::borrow::Cow;

use serde::Deserialize;

use super::bundle::{Bundle, InstallProperties};
use crate::check::ProblemReport;
use crate::csv::{self, PackageMetadata, to_json};
use crate::schema::decode::decode;
use crate::schema::{BundleDocument, kind};
use crate::{Document, yaml_to_json};

/// Manifests of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// In document order.
    pub objects: Vec<String>,
    /// The ClusterServiceVersion among them.
    pub csv: CsvLocation,
}

/// Location of the ClusterServiceVersion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CsvLocation {
    /// Absent.
    #[default]
    Nowhere,
    /// Index in the objects.
    Object(usize),
    /// Built from `olm.csv.metadata`; not among the objects.
    Beside(String),
}

/// A bundle split from its manifests.
#[derive(Debug)]
pub struct UnpackedBundle<'a> {
    /// The bundle.
    pub bundle: Bundle<'a>,
    /// Its manifests.
    pub contents: Contents,
    /// Its document with empty manifests: the input of package validation.
    pub rest: Document,
}

impl<'a> UnpackedBundle<'a> {
    /// Reads a bundle's document. `None` when it is invalid, which assembling the package reports.
    pub fn new(document: &'a Document, package: &PackageMetadata) -> Option<Self> {
        let mut report = ProblemReport::new(&document.package);
        let typed: BundleDocument<'_> = decode(&document.json).ok()?;
        let (bundle, load) = Bundle::read(&document.name, &document.origin, typed, &mut report)?;
        let problems = report.finish();
        if !problems.errors.0.is_empty() {
            return None;
        }
        let rest = Document {
            json: rest(&bundle, !problems.warnings.0.is_empty()),
            schema: document.schema.clone(),
            package: document.package.clone(),
            name: document.name.clone(),
            origin: document.origin.clone(),
        };
        let contents = load.contents(&bundle, package);
        Some(Self {
            bundle,
            contents,
            rest,
        })
    }
}

/// The document without its manifests. Related images stay only where they may be malformed.
fn rest(bundle: &Bundle<'_>, with_related: bool) -> String {
    let properties = bundle.properties.iter().map(|property| {
        if [kind::BUNDLE_OBJECT, kind::CSV_METADATA].contains(&&*property.kind) {
            property.emptied()
        } else {
            property.clone()
        }
    });
    to_json(&BundleDocument {
        image: bundle.image.clone(),
        properties: properties.collect(),
        related_images: if with_related {
            bundle.related_images.clone()
        } else {
            Vec::new()
        },
    })
}

impl InstallProperties<'_> {
    fn contents(self, bundle: &Bundle<'_>, package: &PackageMetadata) -> Contents {
        let mut objects = self.objects;
        if let Some(index) = objects.iter().position(|object| is_csv(object)) {
            let csv = CsvLocation::Object(index);
            return Contents { objects, csv };
        }
        let Some(metadata) = self.metadata.first() else {
            let csv = CsvLocation::Nowhere;
            return Contents { objects, csv };
        };
        let json = csv::write(metadata, bundle, package);
        let csv = if objects.is_empty() {
            objects.push(json);
            CsvLocation::Object(0)
        } else {
            CsvLocation::Beside(json)
        };
        Contents { objects, csv }
    }
}

fn is_csv(object: &str) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Object<'a> {
        #[serde(borrow)]
        kind: Cow<'a, str>,
    }
    let kind = |json: &str| {
        let object = serde_json::from_str::<Object<'_>>(json);
        object.map(|object| object.kind == "ClusterServiceVersion")
    };
    // A manifest that begins like JSON may be YAML.
    kind(object).unwrap_or_else(|_| {
        yaml_to_json(object).is_ok_and(|json| kind(&json).is_ok_and(|is_csv| is_csv))
    })
}
