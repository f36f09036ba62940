//! Releases of the platform: their selection, components and signatures.

mod boot_images;
mod cross_channel;
mod data;
mod files;
mod graph;
mod images;
mod in_target;
mod live_image;
mod payload;
mod select;
mod settings;
mod shortest_path;
mod updates;

pub use boot_images::BootImageOffer;
pub(crate) use boot_images::{ARCHIVED as BOOT_IMAGE_OFFERS, BootImage, BootImages};
pub use data::GraphData;
pub(crate) use data::{
    ARCHIVED as GRAPH_DATA, ARCHIVED_BASE as GRAPH_BASE, image_name as graph_image_name,
};
pub(crate) use files::FOLDER as RELEASE_FILES;
pub use graph::{GraphRelease, UpdateGraph};
pub(crate) use images::{COMPONENTS, RELEASES};
pub use images::{Releases, releases};
pub(crate) use in_target::TargetReleases;
pub(crate) use payload::components;
pub(crate) use select::{architectures, named};
pub use settings::{ReleaseSources, public_graph_data, usual_graph_base};
pub use updates::Updates;
