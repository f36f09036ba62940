//! Names of catalogs in the target, in archives: without one, a catalog has the name that the peer's v1 gives it.

use model::Error;
use oci::{Repository, Tag};

use crate::archive::{Extra, Set};

/// Its file below the catalog's folder in an archive, which the peer passes by.
const NAME: &str = "target";
/// Units: bytes. A name is shorter.
const LIMIT_BYTES: u64 = 4096;

/// Its file in an archive, below the catalog's folder.
pub(crate) fn extra(folder: &str, repository: &Repository, tag: &Tag) -> Extra {
    Extra::inline(format!("{folder}/{NAME}"), format!("{repository}:{tag}"))
}

/// Reads it from an archive, below the folder of a catalog.
///
/// Blocking. Errors: Invalid – malformed; Internal – the archive cannot be read.
pub(crate) fn of_archive(set: &Set, folder: &str) -> Result<Option<(Repository, Tag)>, Error> {
    let path = format!("{folder}/{NAME}");
    let Some(place) = set.place(&path) else {
        return Ok(None);
    };
    let bytes = place.read(LIMIT_BYTES)?;
    let text = String::from_utf8_lossy(&bytes);
    let Some((repository, tag)) = text.trim().rsplit_once(':') else {
        return Err(Error::invalid(path, "expected REPOSITORY:TAG"));
    };
    Ok(Some((repository.parse()?, tag.parse()?)))
}
