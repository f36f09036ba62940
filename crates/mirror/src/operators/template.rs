//! Templates of CatalogSources.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use bytes::Bytes;
use catalog::yaml_to_json;
use model::Error;
use serde_json::Value;

use crate::archive::{Extra, Set};

pub(crate) const API_VERSION: &str = "operators.coreos.com/v1alpha1";
pub(crate) const KIND: &str = "CatalogSource";
pub(crate) const SOURCE_TYPE: &str = "grpc";
/// Few have a kilobyte. Units: bytes.
const LIMIT: u64 = 1 << 20;
/// Its file below the catalog's folder in an archive, which the peer passes by.
const NAME: &str = "catalogSource.json";

/// The template in a file of this machine, for the catalog of that name.
///
/// Blocking. Errors: Invalid – it cannot be read, or is no CatalogSource of an image.
pub(crate) fn read(file: &str, catalog: &str) -> Result<Value, Error> {
    let wrong = |reason: String| {
        let field = format!("targetCatalogSourceTemplate {file}");
        Error::invalid(field, reason)
    };
    let mut text = String::new();
    let opened = File::open(Path::new(file));
    let read = opened.and_then(|opened| opened.take(LIMIT).read_to_string(&mut text));
    read.map_err(|e| wrong(e.to_string()))?;
    let json = yaml_to_json(&text).map_err(|e| wrong(format!("it is no YAML: {e}")))?;
    let template = serde_json::from_str(&json).map_err(|e| wrong(e.to_string()))?;
    checked(&template, catalog)
}

/// Its file in an archive, below the catalog's folder.
pub(crate) fn extra(folder: &str, template: &Value) -> Extra {
    Extra::inline(format!("{folder}/{NAME}"), template.to_string())
}

/// Reads it from an archive, below the folder of the catalog of that name.
///
/// Blocking. Errors: Invalid – malformed; Internal – the archive cannot be read.
pub(crate) fn of_archive(set: &Set, folder: &str, catalog: &str) -> Result<Option<Value>, Error> {
    let path = format!("{folder}/{NAME}");
    let Some(place) = set.place(&path) else {
        return Ok(None);
    };
    let bytes: Bytes = place.read(LIMIT)?;
    let template = serde_json::from_slice(&bytes);
    let template = template.map_err(|e| Error::invalid(path, e.to_string()))?;
    checked(&template, catalog).map(Some)
}

/// A template whose members can be set.
///
/// Errors: Invalid – it is no CatalogSource, or one of another kind.
pub(crate) fn checked(template: &Value, catalog: &str) -> Result<Value, Error> {
    let wrong = |what: &str| {
        let reason = format!("the template for {catalog} {what}");
        Err(Error::invalid("targetCatalogSourceTemplate", reason))
    };
    let is_map = |member: &str| matches!(template.get(member), None | Some(Value::Object(_)));
    if template["apiVersion"] != API_VERSION || template["kind"] != KIND {
        return wrong("is no CatalogSource of operators.coreos.com/v1alpha1");
    }
    if !is_map("metadata") || !is_map("spec") {
        return wrong("has a metadata or spec that is no map");
    }
    let spec = &template["spec"];
    if !spec["configMap"].is_null() {
        return wrong("names a configMap, which a catalog in an image does not have");
    }
    if !spec["sourceType"].is_null() && spec["sourceType"] != SOURCE_TYPE {
        return wrong("has another sourceType than grpc");
    }
    Ok(template.clone())
}
