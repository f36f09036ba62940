//! Compatibility of a cluster's operators with its version, architecture, platform, and with each other.
//!
//! Source: assisted-service, internal/featuresupport/common.go (ValidateIncompatibleFeatures),
//! internal/operators/manager.go (EnsureOperatorPrerequisite).

use std::collections::BTreeSet;

use model::Error;
use model::cluster::{Cluster, ClusterKind};
use model::operators::OperatorType;
use model::support::FeatureId;
use model::versions::CpuArchitecture;

use super::catalogue::{OlmOperator, operator};
use crate::network::networking;
use crate::operators::support::{FeatureSupport, MinorVersion, RequestedPlatform, feature};

const FIELD: &str = "olm_operators";

/// Checks the operators of a cluster. `architectures` are those of its machines, besides its own. Clusters that only
/// add hosts are not checked: their operators are installed.
///
/// Errors: `Invalid` on `olm_operators`, naming the operator and the part that it cannot be used with.
pub(crate) fn check(
    cluster: &Cluster,
    architectures: &BTreeSet<CpuArchitecture>,
) -> Result<(), Error> {
    let Ok(version) = cluster.openshift_version.parse::<MinorVersion>() else {
        return Ok(());
    };
    if cluster.kind == ClusterKind::AddHostsCluster {
        return Ok(());
    }
    let chosen: Vec<&OlmOperator> = cluster
        .monitored_operators
        .iter()
        .filter(|one| one.operator_type == Some(OperatorType::Olm))
        .filter_map(|one| operator(&one.name))
        .collect();
    let mut active = cluster_features(cluster);
    active.extend(chosen.iter().map(|operator| operator.feature));
    let own = cluster.cpu_architecture.unwrap_or_default();
    for row in chosen
        .iter()
        .filter_map(|operator| feature(operator.feature))
    {
        for architecture in architectures.iter().chain([&own]) {
            check_availability(row, cluster, version, *architecture)?;
        }
        check_exclusions(row, version, &active)?;
    }
    check_storage(cluster, version, &active)
}

/// Checks networking that the cluster manages, which machines of some architectures do not have.
///
/// Errors: `Invalid` on `user_managed_networking`.
pub(crate) fn check_networking(
    cluster: &Cluster,
    architectures: &BTreeSet<CpuArchitecture>,
) -> Result<(), Error> {
    let row = feature(FeatureId::ClusterManagedNetworking);
    let (Ok(version), Some(row)) = (cluster.openshift_version.parse::<MinorVersion>(), row) else {
        return Ok(());
    };
    let is_usable = |it: &&CpuArchitecture| row.availability(version, **it, None).is_usable();
    match architectures.iter().find(|it| !is_usable(it)) {
        Some(refused) if !networking::is_user_managed(cluster) => Err(Error::invalid(
            "user_managed_networking",
            format!(
                "{} is not available on {refused} in version {}: use true",
                row.name, cluster.openshift_version
            ),
        )),
        _ => Ok(()),
    }
}

fn check_availability(
    row: &FeatureSupport,
    cluster: &Cluster,
    version: MinorVersion,
    architecture: CpuArchitecture,
) -> Result<(), Error> {
    if row.availability(version, architecture, None).is_usable() {
        return Ok(());
    }
    Err(Error::invalid(
        FIELD,
        format!(
            "{} is not available on {architecture} in version {}: leave the operator out, or install another version",
            row.name, cluster.openshift_version
        ),
    ))
}

fn check_exclusions(
    row: &FeatureSupport,
    version: MinorVersion,
    active: &BTreeSet<FeatureId>,
) -> Result<(), Error> {
    let Some(other) = row.excluded(version).find(|id| active.contains(id)) else {
        return Ok(());
    };
    let other = feature(other).map_or(other.as_str(), |other| other.name);
    Err(Error::invalid(
        FIELD,
        format!(
            "{} and {other} exclude each other: leave one of them out",
            row.name
        ),
    ))
}

/// Logical volumes beside virtual machines: single-node clusters from 4.12 on, others from 4.15 on.
/// Source: assisted-service, internal/operators/manager.go, EnsureLVMAndCNVDoNotClash.
fn check_storage(
    cluster: &Cluster,
    version: MinorVersion,
    active: &BTreeSet<FeatureId>,
) -> Result<(), Error> {
    let both = active.contains(&FeatureId::Lvm) && active.contains(&FeatureId::Cnv);
    let least = if networking::is_single_node(cluster) {
        12
    } else {
        15
    };
    if !both || version >= MinorVersion::four(least) {
        return Ok(());
    }
    Err(Error::invalid(
        FIELD,
        format!(
            "lvm and cnv together need version 4.{least} or later, the cluster's is {}: leave one of them out",
            cluster.openshift_version
        ),
    ))
}

/// Features of a cluster that operators exclude.
fn cluster_features(cluster: &Cluster) -> BTreeSet<FeatureId> {
    let is_user_managed = networking::is_user_managed(cluster);
    let claims = [
        (FeatureId::Sno, networking::is_single_node(cluster)),
        (FeatureId::VipAutoAlloc, networking::uses_dhcp(cluster)),
        (FeatureId::UserManagedNetworking, is_user_managed),
        (FeatureId::ClusterManagedNetworking, !is_user_managed),
        (RequestedPlatform::of(cluster).feature(), true),
    ];
    let active = claims.iter().filter(|(_, is_active)| *is_active);
    active.map(|(id, _)| *id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::operators::OperatorCreateParams;

    use crate::samples;

    /// Refusal of operators on a cluster of a version, if any.
    fn refusal(version: &str, control_plane: i64, names: &[&str]) -> Option<String> {
        let mut params = samples::params();
        params.openshift_version = version.to_owned();
        params.control_plane_count = Some(control_plane);
        let named = |name: &&str| OperatorCreateParams {
            name: (*name).to_owned(),
            ..OperatorCreateParams::default()
        };
        params.olm_operators = Some(names.iter().map(named).collect());
        samples::create(params).err().map(|error| error.to_string())
    }

    #[test]
    fn operators_need_their_version() {
        assert_eq!(refusal("4.14", 3, &["mtv"]), None);
        let error = refusal("4.11", 3, &["mtv"]).unwrap();
        assert!(
            error.contains("Migration Toolkit") && error.contains("4.11.9"),
            "{error}"
        );
        assert!(refusal("4.16", 3, &["loki"]).is_some());
        assert_eq!(refusal("4.19", 3, &["loki"]), None);
    }

    #[test]
    fn operators_exclude_each_other_and_small_clusters() {
        let error = refusal("4.16", 3, &["lvm", "odf"]).unwrap();
        assert!(error.contains("exclude each other"), "{error}");
        assert!(refusal("4.16", 1, &["odf"]).is_some());
        assert!(refusal("4.16", 1, &["node-maintenance"]).is_some());
        assert_eq!(refusal("4.16", 1, &["lvm"]), None);
    }

    #[test]
    fn logical_volumes_and_virtual_machines_need_a_later_version() {
        assert_eq!(refusal("4.14", 1, &["lvm", "cnv"]), None);
        assert!(refusal("4.11", 1, &["lvm", "cnv"]).is_some());
        assert_eq!(refusal("4.16", 3, &["lvm", "cnv"]), None);
    }

    #[test]
    fn architectures_of_machines_count_too() {
        let mut params = samples::params();
        params.olm_operators = Some(vec![OperatorCreateParams {
            name: "lso".to_owned(),
            ..OperatorCreateParams::default()
        }]);
        let cluster = samples::create(params).unwrap();
        let arm = BTreeSet::from([CpuArchitecture::Arm64]);
        assert!(check(&cluster, &BTreeSet::new()).is_ok());
        assert!(check(&cluster, &arm).is_err());
    }
}
