//! The file store: what belongs to a cluster and is too large or too opaque for the database.
//!
//! Objects lie under `<WORK_DIR>/<cluster>/<name>`, where a name is one or more plain path elements. What does not
//! live here: rows, decisions, HTTP. The one invariant: an object is either absent or whole; whoever kills the
//! process at any instant leaves at most a temporary file, which the next start sweeps away.

mod name;
mod quota;
mod stale;
mod store;

pub use name::Name;
pub use quota::Limits;
#[cfg(test)]
pub(crate) use stale::LEFT_BEHIND_AFTER;
pub(crate) use stale::{is_left_behind, is_same};
pub use store::{Object, Store};
pub(crate) use store::{make_folder, put_file};

/// Prefix of the manifests that users added: `manifests/<folder>/<file>`.
pub const USER_MANIFESTS: &str = "manifests";
/// Prefix of the manifests that the service made for the last preparation: `generated/<folder>/<file>`.
pub const GENERATED_MANIFESTS: &str = "generated";
/// Prefix of uploaded logs: `logs/<host or controller>/logs.tar.gz`.
pub const LOGS: &str = "logs";

/// What a reset keeps: the user's own manifests and the logs that say why the reset was needed.
pub const KEPT_BY_RESET: &[&str] = &[USER_MANIFESTS, LOGS];
