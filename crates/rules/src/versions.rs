//! Installable versions: release and OS images, their selection by version, and the versions listing.
//!
//! Reading files and asking registries is not done here.

pub(crate) mod agent_version;
mod find;
mod listing;
mod load;
mod number;
pub mod offer;

pub use find::{FoundOsImage, ResolvedRelease, architecture, find_os_image, find_release, release};
pub use listing::{Query, listing, os_streams};
pub use load::{load_os_images, load_platform_versions, load_release_images, load_release_sources};
pub use number::{MalformedVersion, Number, at_least};
