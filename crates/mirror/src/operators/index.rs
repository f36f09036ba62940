//! The pruned catalog, as one file.

use std::collections::BTreeMap;
use std::io::Write;

use catalog::cache::CatalogCache;
use catalog::filter::{cut, pin};
use catalog::write::{CatalogFormat, document, in_order};
use model::Error;

use super::choice::Choice;
use crate::names;

/// Writes the pruned catalog, one document after the other. Images in `pins` get the pinned reference; keys of `pins` are
/// whole references, where a catalog may leave the host out.
///
/// Blocking. Errors: Invalid – a package whose default channel is not chosen, and none replaces it; Internal – `out` cannot
/// be written.
pub fn write_index(
    cache: &CatalogCache,
    choice: &Choice,
    pins: &BTreeMap<String, String>,
    out: &mut impl Write,
) -> Result<(), Error> {
    let unwritable = |e| Error::internal("writing a catalog", e);
    for (name, part) in choice {
        let default = part.default_channel.as_deref();
        let cut = cache
            .with_package(name, |package, documents| {
                cut(package, documents, &part.channels, default)
            })
            .map_err(|e| Error::internal(format!("reading the package {name}"), e))?;
        let Some(cut) = cut else {
            continue;
        };
        let documents = cut.map_err(|e| Error::invalid("defaultChannel", e.to_string()))?;
        let named = |image: &str| {
            let whole = names::reference(image).ok()?;
            pins.get(&whole.to_string()).cloned()
        };
        let documents: Vec<_> = documents.into_iter().map(|it| pin(it, named)).collect();
        for it in in_order(&documents) {
            document(&it.json, CatalogFormat::Json, out).map_err(unwritable)?;
        }
    }
    Ok(())
}
