//! Imports SQLite catalogs (`index.db`), the format before file-based catalogs.

mod error;
mod package;
mod schema_version;
#[cfg(test)]
mod tests;
mod values;

use std::path::Path;

use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

use crate::{Document, DocumentOrigin};

pub use error::ImportError;
use schema_version::{NEWEST, OLDEST, SchemaVersion};

/// Deprecation notice for users of such a database.
pub const NOTICE: &str =
    "SQLite catalogs are deprecated, and current tools do not serve them; keep the converted files";

/// Longest value: bounds the memory that a damaged database takes. Units: bytes.
const MAX_VALUE: i32 = 256 << 20;

/// Result of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    pub packages: usize,
    /// Deprecated bundles, which the import omits, sorted. Source: `opm migrate`.
    pub left_out: Vec<String>,
    /// See [`NOTICE`].
    pub notice: &'static str,
}

/// Imports a database, usually `index.db`; calls `each` with the documents of one package after the other, by name.
///
/// Errors: not a catalog database, malformed content, or an error of `each`.
/// Source: operator-framework/operator-registry v1.73.0, `pkg/sqlite`, `pkg/api/api_to_model.go`.
pub fn import<E>(
    database: &Path,
    mut each: impl FnMut(&str, Vec<Document>) -> Result<(), E>,
) -> Result<Import, ImportError<E>> {
    let connection = open(database)?;
    let layout = layout(&connection)?;
    let origin = DocumentOrigin::new(database.file_name().unwrap_or_default(), 1);
    let names: Vec<String> = connection
        .prepare("select name from package order by name")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut left_out = Vec::new();
    for name in &names {
        let reader = package::PackageReader {
            connection: &connection,
            layout,
            package: name,
        };
        let read = reader.read(&origin)?;
        left_out.extend(read.left_out);
        each(name, read.documents).map_err(ImportError::Each)?;
    }
    left_out.sort_unstable();
    left_out.dedup();
    Ok(Import {
        packages: names.len(),
        left_out,
        notice: NOTICE,
    })
}

/// Opens read-only and without the code that schemas may carry.
fn open(database: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

fn layout<E>(connection: &Connection) -> Result<SchemaVersion, ImportError<E>> {
    let version: Option<i64> =
        connection.query_row("select max(version) from schema_migrations", [], |row| {
            row.get(0)
        })?;
    match version {
        Some(version) if (OLDEST..=NEWEST).contains(&version) => Ok(SchemaVersion(version)),
        version => Err(ImportError::Layout(version)),
    }
}
