//! The request of a rehearsal.

use std::fmt;

use serde::Deserialize;

/// Largest site file of a request. Units: bytes.
pub const MAX_SITE_BYTES: usize = 2 << 20;
/// Most machines of a request, those that join included: each has tasks and requests of its own.
pub const MAX_MACHINES: usize = 500;
/// Most faults of a request.
pub const MAX_FAULTS: usize = 500;

/// The site of a rehearsal, its machines and their faults.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RehearsalRequest {
    /// Text of a site file; none: the machines of the profile.
    pub site: Option<String>,
    /// Name of a row of [`PROFILES`](crate::PROFILES).
    pub profile: Option<String>,
    /// Faults: `NAME@HOST`, or `NAME` for a host that the seed chooses.
    pub faults: Vec<String>,
    /// Seed of serial numbers, chosen hosts and lost requests.
    pub seed: String,
    /// Version of the release; none: the default release of the server.
    pub release: Option<String>,
}

impl Default for RehearsalRequest {
    fn default() -> Self {
        Self {
            site: None,
            profile: None,
            faults: Vec::new(),
            seed: "1".to_owned(),
            release: None,
        }
    }
}

impl fmt::Debug for RehearsalRequest {
    /// Without the site, whose pull secret no log may have.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RehearsalRequest")
            .field("site_bytes", &self.site.as_ref().map(String::len))
            .field("profile", &self.profile)
            .field("faults", &self.faults)
            .field("seed", &self.seed)
            .field("release", &self.release)
            .finish()
    }
}

/// Bounds on the cost of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestBounds {
    pub(crate) site_bytes: usize,
    pub(crate) machines: usize,
    pub(crate) faults: usize,
}

impl RequestBounds {
    /// Bounds on requests of others.
    pub(crate) const CLIENT: Self = Self {
        site_bytes: MAX_SITE_BYTES,
        machines: MAX_MACHINES,
        faults: MAX_FAULTS,
    };
    /// No bounds: the request is that of the user of this machine.
    pub(crate) const NONE: Self = Self {
        site_bytes: usize::MAX,
        machines: usize::MAX,
        faults: usize::MAX,
    };
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn missing_members_have_defaults_and_unknown_ones_are_refused() {
        let request: RehearsalRequest =
            serde_json::from_value(json!({ "profile": "3+0" })).unwrap();
        assert_eq!(
            (request.seed.as_str(), request.faults.len(), request.site),
            ("1", 0, None)
        );
        assert!(serde_json::from_value::<RehearsalRequest>(json!({ "sites": "x" })).is_err());
    }

    #[test]
    fn the_site_is_not_in_logs() {
        let request = RehearsalRequest {
            site: Some("pullSecret: secret".to_owned()),
            ..RehearsalRequest::default()
        };
        let text = format!("{request:?}");
        assert!(
            !text.contains("secret") && text.contains("Some(18)"),
            "{text}"
        );
    }
}
