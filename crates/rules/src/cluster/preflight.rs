//! Hardware requirements of a cluster before its hosts are known: those of the platform, and of each operator.
//!
//! Source: assisted-service, internal/hardware/validator.go (GetPreflightHardwareRequirements),
//! internal/operators/<name>/ (GetPreflightRequirements).

use model::cluster::Cluster;
use model::hardware::{
    ClusterHostRequirementsDetails, HostTypeHardwareRequirements, OperatorHardwareRequirements,
    PreflightHardwareRequirements, RoleHardwareRequirements,
};

use crate::hardware::requirements::Requirements;
use crate::host::is_day2;
use crate::network::networking;
use crate::operators::support::MinorVersion;
use crate::operators::{HostResources, OPERATORS, OlmOperator, requirements};
use crate::policy::InstallationPolicy;

/// Requirements of a cluster. One that only adds hosts has its operators already: none are listed.
pub fn preflight_requirements(
    cluster: &Cluster,
    policy: &InstallationPolicy,
) -> PreflightHardwareRequirements {
    let of_platform = Requirements::of(policy, &cluster.openshift_version);
    let master = if networking::is_single_node(cluster) {
        of_platform.single_node
    } else {
        of_platform.master
    };
    let platform = |quantitative| HostTypeHardwareRequirements {
        quantitative,
        qualitative: Vec::new(),
    };
    let offered = OPERATORS.iter().filter(|_| !is_day2(cluster));
    PreflightHardwareRequirements {
        operators: offered.map(|one| of_operator(one, cluster)).collect(),
        ocp: RoleHardwareRequirements {
            worker: platform(of_platform.worker),
            master: platform(master),
        },
    }
}

fn of_operator(operator: &OlmOperator, cluster: &Cluster) -> OperatorHardwareRequirements {
    let single_node = networking::is_single_node(cluster);
    let version = cluster.openshift_version.parse();
    let version = version.unwrap_or(MinorVersion::four(u64::MAX));
    let row = requirements(operator.name, version);
    let (master, worker) = row.map_or_else(Default::default, |row| {
        let master = if single_node {
            row.single_node
        } else {
            row.master
        };
        (master, row.worker)
    });
    let qualitative = row.map_or(&[][..], |row| row.qualitative);
    let role = |resources: HostResources| HostTypeHardwareRequirements {
        quantitative: ClusterHostRequirementsDetails {
            cpu_cores: resources.cores,
            ram_mib: resources.mib,
            ..ClusterHostRequirementsDetails::default()
        },
        qualitative: qualitative.iter().map(ToString::to_string).collect(),
    };
    OperatorHardwareRequirements {
        operator_name: operator.name.to_owned(),
        dependencies: operator
            .dependencies(single_node)
            .map(str::to_owned)
            .collect(),
        requirements: RoleHardwareRequirements {
            worker: role(worker),
            master: role(master),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use model::cluster::ClusterKind;

    fn cores(cluster: &Cluster, name: &str) -> (i64, i64) {
        let all = preflight_requirements(cluster, &InstallationPolicy::default());
        let found = all
            .operators
            .into_iter()
            .find(|one| one.operator_name == name);
        let needs = found.unwrap().requirements;
        (
            needs.master.quantitative.cpu_cores,
            needs.worker.quantitative.cpu_cores,
        )
    }

    #[test]
    fn every_operator_is_listed_with_its_resources() {
        let mut cluster = fixtures::cluster(3);
        assert_eq!(cores(&cluster, "cnv"), (4, 2));
        assert_eq!(cores(&cluster, "lso"), (0, 0));
        assert_eq!(cores(&fixtures::cluster(1), "cnv"), (6, 2));
        let policy = InstallationPolicy::default();
        let all = preflight_requirements(&cluster, &policy);
        assert_eq!(all.operators.len(), OPERATORS.len());
        assert_eq!(all.ocp.master.quantitative.disk_size_gb, 120);
        let json = serde_json::to_value(&all).unwrap();
        // As with the peer, no list instead of an empty one.
        assert_eq!(
            json["ocp"]["worker"]["qualitative"],
            serde_json::Value::Null
        );
        cluster.kind = ClusterKind::AddHostsCluster;
        assert!(
            preflight_requirements(&cluster, &policy)
                .operators
                .is_empty()
        );
    }
}
