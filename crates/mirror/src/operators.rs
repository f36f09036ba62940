//! Parts of operator catalogs: which bundles are carried, which images they need, and the smaller catalog that is served.

pub(crate) mod breaches;
mod choose;
mod images;
mod index;
mod needs;
mod open;
mod original;
mod rebuild;
mod starts;
pub(crate) mod template;

pub use choose::{Choice, PackageChoice, Reason, choose};
pub(crate) use images::name_by_digest;
pub use images::{Of, wanted};
pub use index::write_index;
pub use open::OpenedCatalog;
pub use original::{Original, folder_of, index_path};
pub use rebuild::rebuild;
