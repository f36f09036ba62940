//! What rows hold.

use rusqlite::types::{FromSql, FromSqlResult, ValueRef};
use serde::Deserialize;
use serde_json::{Value, json};

/// What is taken from a bundle's ClusterServiceVersion.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Csv {
    pub(super) kind: String,
    pub(super) spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Spec {
    pub(super) version: Option<String>,
    pub(super) icon: Vec<Icon>,
    pub(super) related_images: Vec<Image>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Icon {
    pub(super) base64data: String,
    pub(super) mediatype: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Image {
    pub(super) name: String,
    pub(super) image: String,
}

/// Text, also where it was put in as bytes; nothing is an empty one.
pub(super) struct Text(pub(super) String);

impl FromSql for Text {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value {
            ValueRef::Null => Ok(Self(String::new())),
            ValueRef::Blob(bytes) => Ok(Self(String::from_utf8_lossy(bytes).into_owned())),
            value => value.as_str().map(|text| Self(text.to_owned())),
        }
    }
}

/// Two texts.
pub(super) fn pair(row: &rusqlite::Row<'_>) -> rusqlite::Result<(String, String)> {
    let (Text(kind), Text(value)) = (row.get(0)?, row.get(1)?);
    Ok((kind, value))
}

/// Group, version and kind.
pub(super) fn gvk(row: &rusqlite::Row<'_>) -> rusqlite::Result<Value> {
    let (Text(group), Text(version), Text(kind)) = (row.get(0)?, row.get(1)?, row.get(2)?);
    Ok(json!({"group": group, "kind": kind, "version": version}))
}
