//! Roles of hosts that need a version and a platform.

use model::Error;
use model::cluster::{Cluster, PlatformType};

use crate::input;
use crate::versions::at_least;

/// Source: assisted-service, internal/common/common.go, ValidateClusterSupportsArbiterHosts.
pub(crate) fn check_arbiter(cluster: Option<&Cluster>) -> Result<(), Error> {
    let Some(cluster) = cluster else {
        return Ok(());
    };
    let version = &cluster.openshift_version;
    let is_possible = match cluster.platform_type() {
        PlatformType::Baremetal => at_least(version, 4, 19),
        PlatformType::None => at_least(version, 4, 22),
        _ => false,
    };
    if is_possible {
        return Ok(());
    }
    Err(input::refuse(
        "host_role",
        "arbiter",
        "needs version 4.19 on platform baremetal, or 4.22 on platform none: use master or worker",
    ))
}

/// Source: assisted-service, internal/common/common.go, ValidateClusterSupportsFencingCredentials.
pub(crate) fn check_fencing(cluster: Option<&Cluster>) -> Result<(), Error> {
    let is_possible = cluster.is_none_or(|cluster| {
        at_least(&cluster.openshift_version, 4, 20)
            && matches!(
                cluster.platform_type(),
                PlatformType::Baremetal | PlatformType::None
            )
    });
    if is_possible {
        return Ok(());
    }
    Err(Error::invalid(
        "fencing_credentials",
        "need version 4.20 and platform baremetal or none: leave them out",
    ))
}
