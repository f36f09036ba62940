//! The version of a bundle, and its release: earlier ones are in the build metadata of the version.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;

use crate::Document;
use crate::schema::decode::decode;
use crate::schema::{BundleDocument, PackageProperty, Property, kind};
use crate::version::{BundleRelease, BundleVersion};

/// Annotation of CSVs whose build metadata is a release.
const SUBSTITUTES_FOR: &str = "olm.substitutesFor";

/// Package, version and release of a bundle.
pub(super) struct PackageVersion {
    pub(super) package: String,
    pub(super) version: BundleVersion,
    pub(super) release: BundleRelease,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Annotated {
    annotations: std::collections::BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Object {
    metadata: Annotated,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ObjectData {
    data: String,
}

/// The property `olm.package` of a bundle.
///
/// Errors: not exactly one, or one that cannot be read.
pub(super) fn package_property(document: &Document) -> Result<PackageVersion, String> {
    let name = &document.name;
    let bundle: BundleDocument<'_> =
        decode(&document.json).map_err(|e| format!("parse bundle {name:?}: {e}"))?;
    let mut found = bundle
        .properties
        .iter()
        .filter(|it| it.kind == kind::PACKAGE);
    let (Some(property), None) = (found.next(), found.next()) else {
        return Err(format!(
            "bundle {name:?} must have exactly 1 \"olm.package\" property"
        ));
    };
    let property: PackageProperty<'_> = decode(property.value())
        .map_err(|e| format!("bundle {name:?} has a malformed \"olm.package\" property: {e}"))?;
    let wrong = |what: &str, text: &str, e: &dyn std::fmt::Display| {
        format!("bundle {name:?} has invalid {what} {text:?}: {e}")
    };
    let version: BundleVersion = property
        .version
        .parse()
        .map_err(|e| wrong("version", &property.version, &e))?;
    let release: BundleRelease = property
        .release
        .parse()
        .map_err(|e| wrong("release", &property.release, &e))?;
    let is_legacy =
        release.is_empty() && version.has_build() && bundle.properties.iter().any(is_substitute);
    let release = if is_legacy {
        let build = version.build();
        build.parse().map_err(|e| wrong("release", build, &e))?
    } else {
        release
    };
    Ok(PackageVersion {
        package: property.package_name.into_owned(),
        version,
        release,
    })
}

/// Whether a property holds a CSV with the annotation.
fn is_substitute(property: &Property<'_>) -> bool {
    let annotations = match &*property.kind {
        kind::CSV_METADATA => decode::<Annotated>(property.value()).unwrap_or_default(),
        kind::BUNDLE_OBJECT => {
            let object: ObjectData = decode(property.value()).unwrap_or_default();
            let json = BASE64_STANDARD.decode(object.data).unwrap_or_default();
            let json = String::from_utf8(json).unwrap_or_default();
            decode::<Object>(&json).unwrap_or_default().metadata
        }
        _ => return false,
    };
    let value = annotations.annotations.get(SUBSTITUTES_FOR);
    value.is_some_and(|it| !it.is_empty())
}
