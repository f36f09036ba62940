//! Operator catalogs: selected bundles, their images, and the pruned catalog that is served.

pub(crate) mod archived_name;
mod choice;
mod choose;
mod dependencies;
mod filter_tag;
mod images;
mod index;
mod minimum_versions;
mod open;
mod original;
mod rebuild;
pub(crate) mod rule_violations;
pub(crate) mod template;

use model::image_set::OperatorSelection;

pub use choice::{Choice, PackageChoice, Reason};
pub use choose::choose;
pub(crate) use choose::{Chosen, choose_valid};
pub(crate) use filter_tag::filter_tags;
pub(crate) use images::name_by_digest;
pub use images::{CatalogInfo, wanted};
pub use index::write_index;
pub use open::OpenedCatalog;
pub use original::{Original, folder_of, index_path};
pub use rebuild::rebuild;

/// Whether all of a catalog is selected.
pub(crate) fn is_whole(operator: &OperatorSelection) -> bool {
    operator.packages.is_empty() && operator.full
}
