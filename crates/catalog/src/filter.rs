//! Filtering: the selected packages, channels and versions of a catalog, valid on their own.

mod edit;
mod package;
mod pin;
mod selection;
#[cfg(test)]
mod tests;

pub use package::{Channels, FilteredPackage, SelectedBundles, broken, choose, cut, filter};
pub use pin::pin;
pub use selection::{CatalogSelection, ChannelSelection, PackageSelection, Unsatisfied};
