//! Values of rows.

use rusqlite::types::{FromSql, FromSqlResult, ValueRef};
use serde::Deserialize;
use serde_json::{Value, json};

/// The fields read from a bundle's ClusterServiceVersion.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CsvFields {
    pub(super) kind: String,
    pub(super) spec: CsvSpec,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct CsvSpec {
    pub(super) version: Option<String>,
    pub(super) icon: Vec<Icon>,
    pub(super) related_images: Vec<CsvImage>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Icon {
    pub(super) base64data: String,
    pub(super) mediatype: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CsvImage {
    pub(super) name: String,
    pub(super) image: String,
}

/// Text or UTF-8 blob; null is the empty string.
pub(super) struct SqlText(pub(super) String);

impl FromSql for SqlText {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value {
            ValueRef::Null => Ok(Self(String::new())),
            ValueRef::Blob(bytes) => Ok(Self(String::from_utf8_lossy(bytes).into_owned())),
            value => value.as_str().map(|text| Self(text.to_owned())),
        }
    }
}

/// Reads two text columns.
pub(super) fn pair(row: &rusqlite::Row<'_>) -> rusqlite::Result<(String, String)> {
    let (SqlText(kind), SqlText(value)) = (row.get(0)?, row.get(1)?);
    Ok((kind, value))
}

/// Reads group, version and kind.
pub(super) fn gvk(row: &rusqlite::Row<'_>) -> rusqlite::Result<Value> {
    let (SqlText(group), SqlText(version), SqlText(kind)) = (row.get(0)?, row.get(1)?, row.get(2)?);
    Ok(json!({"group": group, "kind": kind, "version": version}))
}
