//! Mistakes that the data of a site prove: a search each, in a table.

mod addresses;
mod machines;
mod services;
mod table;

use super::Site;

pub use table::{KINDS, check, is_consequence};

/// A mistake as a row: the search for it, and the texts that are the same at each place.
#[derive(Debug)]
pub struct MistakeKind {
    /// Name.
    pub id: &'static str,
    /// The state without the mistake.
    pub required: &'static str,
    /// The remedy, as one sentence.
    pub fix: &'static str,
    find: fn(&Site) -> Vec<Place>,
}

/// A place where a mistake was found.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    /// Name of the host; empty for the cluster.
    host: String,
    /// The value that was found.
    observed: String,
}

impl Place {
    fn at(host: &str, observed: String) -> Self {
        Self {
            host: host.to_owned(),
            observed,
        }
    }

    fn cluster(observed: String) -> Self {
        Self::at("", observed)
    }
}

/// A mistake of a site, of its data or found by a validation: cause, host, observed and required value, remedy.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SiteFinding {
    /// Name of the mistake or id of the validation.
    pub id: String,
    /// Name of the host; empty for the cluster.
    pub host: String,
    /// The value that was found.
    pub observed: String,
    /// The value that would pass.
    pub required: String,
    /// The remedy, as one sentence.
    pub fix: String,
}
