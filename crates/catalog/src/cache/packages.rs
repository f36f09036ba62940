//! Reading single packages from a cache.

use super::header::TableId;
use super::{CatalogCache, Damaged, record};
use crate::content::PackageModel;
use crate::{CatalogProblems, Document};

/// Failure to read a package from a cache.
#[derive(Debug, thiserror::Error)]
pub enum PackageReadError {
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// Validation errors; only a damaged cache has them, since invalid catalogs are not cached.
    #[error("{0}")]
    Invalid(#[from] CatalogProblems),
}

impl CatalogCache {
    /// Calls `work` with the package `name` and its documents; `None` without such a package.
    ///
    /// Errors: the cache is damaged.
    pub fn with_package<T>(
        &self,
        name: &str,
        work: impl FnOnce(&PackageModel<'_>, &[Document]) -> T,
    ) -> Result<Option<T>, PackageReadError> {
        // Documents of refused packages are in the file, too.
        if !self.has_package(name) {
            return Ok(None);
        }
        let documents = self.documents(name)?;
        // The build has validated it already, by its own strictness.
        let (package, _) = PackageModel::assemble_leniently(&documents)?;
        Ok(package.map(|package| work(&package, &documents)))
    }
    fn has_package(&self, name: &str) -> bool {
        let rows = self.all::<record::Package>(TableId::Packages);
        let order = |row: &record::Package| self.text(row.name).cmp(name);
        self.find(TableId::Packages, rows, order).is_some()
    }
}
