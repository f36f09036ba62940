//! Size of a cluster's control plane.

use model::Error;
use model::cluster::HighAvailabilityMode;

use super::refusal::refuse;
use crate::versions::at_least;

/// Most control plane machines.
const MAX_CONTROL_PLANE: i64 = 5;

/// Both spellings of a cluster's size, in agreement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Topology {
    /// 1 is a single-node cluster.
    pub control_plane_count: i64,
    /// The older spelling.
    pub mode: HighAvailabilityMode,
}

impl Topology {
    /// Whether one machine is the whole cluster.
    pub fn is_single_node(self) -> bool {
        self.control_plane_count == 1
    }
}

/// Reconciles the old and the new member; `two_nodes` says whether the operator allows clusters of two.
///
/// Errors: `Invalid` on `control_plane_count`, `high_availability_mode` or `openshift_version`.
/// Source: assisted-service, internal/common/common.go, GetDefaultHighAvailabilityAndMasterCountParams.
pub fn topology(
    mode: Option<HighAvailabilityMode>,
    count: Option<i64>,
    version: &str,
    two_nodes: bool,
) -> Result<Topology, Error> {
    const FIELD: &str = "control_plane_count";
    let count = match (mode, count) {
        (None | Some(HighAvailabilityMode::Full), None) => 3,
        (Some(HighAvailabilityMode::None), None) => 1,
        (Some(HighAvailabilityMode::None), Some(count)) if count != 1 => {
            return Err(refuse(
                FIELD,
                &count.to_string(),
                "does not agree with high_availability_mode None, which means 1: leave one of them out",
            ));
        }
        (Some(HighAvailabilityMode::Full), Some(1)) => {
            return Err(refuse(
                FIELD,
                "1",
                "does not agree with high_availability_mode Full: leave one of them out",
            ));
        }
        (_, Some(count)) => count,
    };
    let least = if two_nodes && at_least(version, 4, 19) {
        2
    } else {
        3
    };
    let most = if at_least(version, 4, 18) {
        MAX_CONTROL_PLANE
    } else {
        3
    };
    if count != 1 && !(least..=most).contains(&count) {
        return Err(refuse(
            FIELD,
            &count.to_string(),
            &format!("is not possible on version {version}: use 1, or {least} to {most}"),
        ));
    }
    if count == 1 && !at_least(version, 4, 8) {
        return Err(refuse(
            "openshift_version",
            version,
            "does not know single-node clusters: use 4.8 or later",
        ));
    }
    Ok(Topology {
        control_plane_count: count,
        mode: if count == 1 {
            HighAvailabilityMode::None
        } else {
            HighAvailabilityMode::Full
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use HighAvailabilityMode::{Full, None as Single};

    #[test]
    fn sizes() {
        for (mode, count, version, two_nodes, expected) in [
            (None, None, "4.16.3", true, Some(3)),
            (Some(Full), None, "4.16.3", true, Some(3)),
            (Some(Single), None, "4.16.3", true, Some(1)),
            (Some(Single), Some(1), "4.16.3", true, Some(1)),
            (None, Some(1), "4.7.1", true, None),
            (Some(Single), Some(3), "4.16.3", true, None),
            (Some(Full), Some(1), "4.16.3", true, None),
            (None, Some(4), "4.17.9", true, None),
            (None, Some(4), "4.18.0", true, Some(4)),
            (Some(Full), Some(5), "4.18.0", true, Some(5)),
            (None, Some(6), "4.19.0", true, None),
            (None, Some(0), "4.19.0", true, None),
            (None, Some(-1), "4.19.0", true, None),
            (None, Some(2), "4.19.0", true, Some(2)),
            (None, Some(2), "4.19.0", false, None),
            (None, Some(2), "4.18.0", true, None),
        ] {
            let found = topology(mode, count, version, two_nodes);
            let found = found.ok().map(|topology| topology.control_plane_count);
            assert_eq!(found, expected, "{mode:?} {count:?} {version} {two_nodes}");
        }
    }
}
