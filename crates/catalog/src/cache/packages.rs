//! Reading single packages from a cache.

use super::header::TableId;
use super::{CatalogCache, Damaged, record};
use std::collections::BTreeSet;

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
    /// Calls `work` with the package `name` and its documents; `None` without such a package, or when it was refused. A
    /// package of which single bundles are broken is there without them, though it is not served.
    ///
    /// Errors: the cache is damaged.
    pub fn with_package<T>(
        &self,
        name: &str,
        work: impl FnOnce(&PackageModel<'_>, &[Document]) -> T,
    ) -> Result<Option<T>, PackageReadError> {
        // Documents of refused packages are in the file, too.
        if !self.has_package(name) && !self.report().partial.contains_key(name) {
            return Ok(None);
        }
        let documents = self.documents(name)?;
        // The build has validated it already.
        let package = PackageModel::assemble_partly(&documents)?;
        Ok(package.map(|package| work(&package, &documents)))
    }

    /// Names of the packages that [`Self::with_package`] finds, sorted.
    pub fn package_names(&self) -> BTreeSet<String> {
        let rows = self.all::<record::Package>(TableId::Packages);
        let served = (0..rows.count).filter_map(|number| {
            let row: record::Package = self.row(TableId::Packages, number)?;
            Some(self.text(row.name).to_owned())
        });
        served
            .chain(self.report().partial.keys().cloned())
            .collect()
    }

    fn has_package(&self, name: &str) -> bool {
        let rows = self.all::<record::Package>(TableId::Packages);
        let order = |row: &record::Package| self.text(row.name).cmp(name);
        self.find(TableId::Packages, rows, order).is_some()
    }
}
