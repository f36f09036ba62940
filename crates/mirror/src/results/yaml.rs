//! Objects as YAML.

use model::Error;
use serde::Serialize;

/// A document of a stream. Nothing is folded: users search these files for names.
///
/// Errors: Internal.
pub(super) fn document(value: &impl Serialize) -> Result<String, Error> {
    Ok(format!("---\n{}", text(value)?))
}

/// As [`document`], for a place inside another one.
///
/// Errors: Internal.
pub(crate) fn text(value: &impl Serialize) -> Result<String, Error> {
    let options = serde_yaml::ser_options! { prefer_block_scalars: false };
    serde_yaml::to_string_with_options(value, options)
        .map_err(|e| Error::internal("writing an object as YAML", e))
}
