//! Copies of whole catalogs, as older tools make them: a pruned index is pushed, it goes with all its images into a folder,
//! and from the folder into a registry, where names have one component below the namespace.
//!
//! Catalogs are copied as they are. The policies name sources as clusters know them, so that nothing has to be edited.
//!
//! Source: the specification, catalog-level copy; `oc adm catalog mirror` for names and folders.

mod copy;
mod layout;
mod prune;
mod tree;

pub use copy::{Copy, LoadedCatalog};
pub use prune::{SmallerIndex, prune};
pub use tree::RepositoryTree;
