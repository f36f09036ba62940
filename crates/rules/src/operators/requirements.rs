//! Cores and memory that operators add to the requirements of hosts.
//!
//! Source: assisted-service, internal/operators/<name>/ (GetHostRequirements, GetPreflightRequirements).

use model::host::HostRole;

use crate::operators::support::MinorVersion;

/// Cores and memory of one host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostResources {
    /// CPU cores.
    pub cores: i64,
    /// Memory. Units: MiB.
    pub mib: i64,
}

/// Resources that an operator takes from hosts, from a minor release of platform 4 on.
#[derive(Debug, Clone, Copy)]
pub struct OperatorRequirements {
    /// Name of the operator.
    pub name: &'static str,
    since: u64,
    /// On a control plane host.
    pub master: HostResources,
    /// On a worker.
    pub worker: HostResources,
    /// On the host of a single-node cluster.
    pub single_node: HostResources,
    /// Further requirements, for readers.
    pub qualitative: &'static [&'static str],
}

impl OperatorRequirements {
    /// Resources on a host of a role. An arbiter runs no operators; hosts without a role count as workers.
    pub fn role(&self, role: HostRole, single_node: bool) -> HostResources {
        match role {
            HostRole::Arbiter => HostResources::default(),
            _ if single_node => self.single_node,
            HostRole::Master | HostRole::Bootstrap => self.master,
            HostRole::Worker | HostRole::AutoAssign => self.worker,
        }
    }
}

/// Units: GiB.
const GIB: i64 = 1024;
const NOTHING: HostResources = resources(0, 0);

const fn resources(cores: i64, mib: i64) -> HostResources {
    HostResources { cores, mib }
}

/// Names of operators that take resources, ascending by release within a name: master, worker, single node.
#[rustfmt::skip]
static REQUIREMENTS: &[OperatorRequirements] = &[
    row("odf", 0, [resources(6, 19 * GIB), resources(8, 19 * GIB), NOTHING], &[
        "three hosts or more, each with an HDD or SSD besides the installation disk",
        "2 cores and 5 GiB of memory for each of these disks",
    ]),
    row("cnv", 0, [resources(4, 150), resources(2, 360), resources(6, 510)], &[
        "a CPU with virtualization (vmx or svm)",
        "1 GiB of memory for each supported GPU and SR-IOV network card",
    ]),
    row("lvm", 0, [resources(1, 1200); 3], LVM_DISKS),
    row("lvm", 13, [resources(1, 400); 3], LVM_DISKS),
    row("lvm", 16, [resources(1, 100); 3], LVM_DISKS),
    row("mce", 0, [resources(4, 16 * GIB), resources(4, 16 * GIB), resources(8, 32 * GIB)], &[]),
    row("mtv", 0, [resources(1, 1024); 3], &[]),
    row("osc", 0, [resources(1, 1024); 3], &[]),
    row("openshift-ai", 0, [NOTHING, resources(8, 32 * GIB), NOTHING], &["two workers or more"]),
];

const LVM_DISKS: &[&str] = &["an HDD or SSD besides the installation disk"];

const fn row(
    name: &'static str,
    since: u64,
    [master, worker, single_node]: [HostResources; 3],
    qualitative: &'static [&'static str],
) -> OperatorRequirements {
    OperatorRequirements {
        name,
        since,
        master,
        worker,
        single_node,
        qualitative,
    }
}

/// Requirements of an operator in a version; none for operators that take nothing.
pub fn requirements(name: &str, version: MinorVersion) -> Option<&'static OperatorRequirements> {
    let mut rows = REQUIREMENTS.iter().rev();
    rows.find(|row| row.name == name && MinorVersion::four(row.since) <= version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_logical_volumes_falls_with_the_version() {
        for (minor, mib) in [
            (11, 1200),
            (12, 1200),
            (13, 400),
            (15, 400),
            (16, 100),
            (20, 100),
        ] {
            let found = requirements("lvm", MinorVersion::four(minor)).unwrap();
            assert_eq!(
                found.role(HostRole::Worker, false),
                resources(1, mib),
                "4.{minor}"
            );
        }
        assert!(requirements("lso", MinorVersion::four(16)).is_none());
    }

    #[test]
    fn roles_differ() {
        let cnv = requirements("cnv", MinorVersion::four(16)).unwrap();
        assert_eq!(cnv.role(HostRole::Bootstrap, false), resources(4, 150));
        assert_eq!(cnv.role(HostRole::AutoAssign, false), resources(2, 360));
        assert_eq!(cnv.role(HostRole::Master, true), resources(6, 510));
        assert_eq!(cnv.role(HostRole::Arbiter, false), NOTHING);
    }
}
