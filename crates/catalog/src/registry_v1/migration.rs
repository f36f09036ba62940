//! Migration of bundles to `olm.csv.metadata`. Source: operator-registry, `alpha/action/migrations`.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use super::manifests::CSV;
use crate::csv::metadata_of_csv;
use crate::normal::normalised;
use crate::schema::{BUNDLE, kind};
use crate::{Document, yaml_to_json};

/// The document with the metadata of its CSV instead of its manifests; unchanged where it is no bundle with an image and
/// a CSV, or has such metadata already.
///
/// Errors: a CSV that cannot be read.
pub fn with_csv_metadata(document: &Document) -> Result<Document, String> {
    if document.schema != BUNDLE {
        return Ok(document.clone());
    }
    let mut bundle: Value = serde_json::from_str(&document.json).map_err(|e| e.to_string())?;
    let has_image = bundle["image"].as_str().is_some_and(|it| !it.is_empty());
    let Some(Value::Array(properties)) = bundle.get_mut("properties") else {
        return Ok(document.clone());
    };
    let has_metadata = properties.iter().any(|it| it["type"] == kind::CSV_METADATA);
    let csv = properties.iter().find_map(csv);
    let (true, false, Some(csv)) = (has_image, has_metadata, csv) else {
        return Ok(document.clone());
    };
    let value = metadata_of_csv(&csv)
        .and_then(|json| serde_json::from_str::<Value>(&json).map_err(|e| e.to_string()))
        .map_err(|e| format!("the CSV of bundle {:?}: {e}", document.name))?;
    properties.retain(|it| it["type"] != kind::BUNDLE_OBJECT);
    properties.push(serde_json::json!({"type": kind::CSV_METADATA, "value": value}));
    let json = normalised(&bundle.to_string()).map_err(|e| e.to_string())?;
    Ok(Document {
        json,
        ..document.clone()
    })
}

/// The CSV in a property.
fn csv(property: &Value) -> Option<String> {
    if property["type"] != kind::BUNDLE_OBJECT {
        return None;
    }
    let data = property["value"]["data"].as_str()?;
    let text = String::from_utf8(BASE64_STANDARD.decode(data).ok()?).ok()?;
    let json = yaml_to_json(&text).ok()?;
    let object: Value = serde_json::from_str(&json).ok()?;
    (object["kind"] == CSV).then_some(json)
}
