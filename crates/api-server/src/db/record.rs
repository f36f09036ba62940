//! Records as JSON texts, with their sealed secrets.
//!
//! Only a record with a secret passes through a JSON value, and only with a key file: the others are printed and
//! parsed at once.

use std::fmt;

use sealing::{KeySet, SecretTable};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Error;

/// Parses the stored record of the row `row`; its secrets are opened.
///
/// Errors: Record; Secret – one that does not open.
pub(super) fn parse<T: DeserializeOwned>(
    keys: &KeySet,
    table: SecretTable,
    row: impl fmt::Display,
    json: &str,
) -> Result<T, Error> {
    let failed = |source| error(table, &row, source);
    if !keys.may_be_sealed(json) {
        return serde_json::from_str(json).map_err(failed);
    }
    let mut value = serde_json::from_str(json).map_err(failed)?;
    keys.open_record(table, &row, &mut value)?;
    serde_json::from_value(value).map_err(failed)
}

/// Prints the record of the row `row`; its secrets are sealed.
///
/// Errors: Record; Secret.
pub(super) fn print(
    keys: &KeySet,
    table: SecretTable,
    row: impl fmt::Display,
    record: &impl Serialize,
) -> Result<String, Error> {
    let failed = |source| error(table, &row, source);
    let json = serde_json::to_string(record).map_err(failed)?;
    if keys.active_id().is_none() || !table.may_have_secrets(&json) {
        return Ok(json);
    }
    let mut value = serde_json::from_str(&json).map_err(failed)?;
    keys.seal_record(table, &row, &mut value)?;
    Ok(value.to_string())
}

fn error(table: SecretTable, row: &impl fmt::Display, source: serde_json::Error) -> Error {
    Error::Record {
        what: format!("{} {row}", table.noun()),
        source,
    }
}
