//! The nouns: every record on a wire or in a file, typed ids, states and the one error type.
//!
//! Not here: decisions (`rules`), I/O of any kind, clocks. The one invariant: a record serialises
//! exactly as the peers' clients expect it, member for member, absent for absent.

pub mod api_group_map;
pub mod archive_name;
pub mod audit;
pub mod bmc_boot;
pub mod catalog_source;
pub mod cluster;
pub mod cluster_nodes;
pub mod declaration;
pub mod domains;
pub mod error;
pub mod events;
pub mod expected_hosts;
pub mod explain;
pub mod hardware;
pub mod host;
pub mod ids;
pub mod image_set;
pub mod infra_env;
pub mod inventory;
pub mod ipxe;
pub mod jobs;
mod large_text;
pub mod logs;
pub mod manifests;
pub mod mirror_metadata;
mod nearest;
pub mod network;
pub mod node_replacement;
pub mod operators;
pub mod release_payload;
pub mod schema;
pub mod size;
pub mod steps;
pub mod support;
pub mod time;
pub mod validations;
pub mod versions;
mod wire;

pub use error::Error;
pub use large_text::LargeText;
pub use nearest::nearest;
pub use wire::{Reported, UnknownValue};
