//! Packages out of a cache, one at a time.

use super::{Cache, Damaged};
use crate::content::Package;
use crate::{Document, Problems};

/// Why a package cannot be had from a cache.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// A cache of a catalog with problems is not built, so it is not what was written.
    #[error("{0}")]
    Invalid(#[from] Problems),
}

impl Cache {
    /// Does `work` with the package of that name and its documents; nothing when there is none.
    ///
    /// Errors: the cache is damaged.
    pub fn with_package<T>(
        &self,
        name: &str,
        work: impl FnOnce(&Package<'_>, &[Document]) -> T,
    ) -> Result<Option<T>, Unusable> {
        let documents = self.documents(name)?;
        let package = Package::assemble(&documents)?;
        Ok(package.map(|package| work(&package, &documents)))
    }
}
