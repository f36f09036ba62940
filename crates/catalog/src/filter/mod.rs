//! Smaller catalogs: the wanted packages, channels and versions of one, valid on their own.

mod edit;
mod package;
mod selection;
#[cfg(test)]
mod tests;

pub use package::{Filtered, filter};
pub use selection::{ChannelSelection, PackageSelection, Selection, Unsatisfied};
