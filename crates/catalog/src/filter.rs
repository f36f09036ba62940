//! Smaller catalogs: the wanted packages, channels and versions of one, valid on their own.

mod edit;
mod package;
mod pin;
mod selection;
#[cfg(test)]
mod tests;

pub use package::{Channels, Chosen, Filtered, choose, cut, filter};
pub use pin::pin;
pub use selection::{CatalogSelection, ChannelSelection, PackageSelection, Unsatisfied};
