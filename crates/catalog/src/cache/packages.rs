//! Packages out of a cache, one at a time.

use super::header::TableId;
use super::{CatalogCache, Damaged, record};
use crate::content::PackageModel;
use crate::{CatalogProblems, Document};

/// Why a package cannot be had from a cache.
#[derive(Debug, thiserror::Error)]
pub enum PackageReadError {
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// A cache of a catalog with problems is not built, so it is not what was written.
    #[error("{0}")]
    Invalid(#[from] CatalogProblems),
}

impl CatalogCache {
    /// Does `work` with the package of that name and its documents; nothing when there is none.
    ///
    /// Errors: the cache is damaged.
    pub fn with_package<T>(
        &self,
        name: &str,
        work: impl FnOnce(&PackageModel<'_>, &[Document]) -> T,
    ) -> Result<Option<T>, PackageReadError> {
        // The documents of a package that was refused are in the file all the same.
        if !self.has_package(name) {
            return Ok(None);
        }
        let documents = self.documents(name)?;
        // The build has judged it, by the rules that counted then.
        let (package, _) = PackageModel::assemble_leniently(&documents)?;
        Ok(package.map(|package| work(&package, &documents)))
    }
    fn has_package(&self, name: &str) -> bool {
        let rows = self.all::<record::Package>(TableId::Packages);
        let order = |row: &record::Package| self.text(row.name).cmp(name);
        self.find(TableId::Packages, rows, order).is_some()
    }
}
