//! The table of profiles: kinds of installations, with their machines and their faults.

use crate::HostFault;

/// A kind of installation as a row.
#[derive(Debug, Clone, Copy)]
pub struct InstallationProfile {
    /// Name on command lines.
    pub name: &'static str,
    /// Its purpose, in a few words.
    pub purpose: &'static str,
    /// Numbers of control plane machines, arbiters and workers.
    pub machines: [usize; 3],
    /// Number of workers that join the installed cluster.
    pub joining: usize,
    /// Whether workers have a GPU.
    pub has_gpus: bool,
    /// Faults, each of one machine that the seed chooses.
    pub faults: &'static [HostFault],
}

/// A compact cluster without faults, which other rows change.
const COMPACT: InstallationProfile = InstallationProfile {
    name: "3+0",
    purpose: "compact cluster: three control plane nodes that run workloads",
    machines: [3, 0, 0],
    joining: 0,
    has_gpus: false,
    faults: &[],
};

/// All profiles.
pub static PROFILES: &[InstallationProfile] = &[
    COMPACT,
    InstallationProfile {
        name: "3+2",
        purpose: "three control plane nodes, two workers",
        machines: [3, 0, 2],
        ..COMPACT
    },
    InstallationProfile {
        name: "5+0",
        purpose: "five control plane nodes",
        machines: [5, 0, 0],
        ..COMPACT
    },
    InstallationProfile {
        name: "sno",
        purpose: "single node",
        machines: [1, 0, 0],
        ..COMPACT
    },
    InstallationProfile {
        name: "tna",
        purpose: "two control plane nodes with an arbiter",
        machines: [2, 1, 0],
        ..COMPACT
    },
    InstallationProfile {
        name: "slow-disk",
        purpose: "a disk that is too slow for etcd",
        faults: &[HostFault::Speed],
        ..COMPACT
    },
    InstallationProfile {
        name: "bad-ntp",
        purpose: "a host whose time sources do not answer",
        faults: &[HostFault::Ntp],
        ..COMPACT
    },
    InstallationProfile {
        name: "duplicate-identity",
        purpose: "two machines with one serial number",
        machines: [3, 0, 1],
        faults: &[HostFault::Identity],
        ..COMPACT
    },
    InstallationProfile {
        name: "boot-order",
        purpose: "a host that boots the discovery image again",
        faults: &[HostFault::BootOrder],
        ..COMPACT
    },
    InstallationProfile {
        name: "lost-medium",
        purpose: "a host whose virtual medium is unplugged",
        faults: &[HostFault::Medium],
        ..COMPACT
    },
    InstallationProfile {
        name: "gpu",
        purpose: "workers with a GPU",
        machines: [3, 0, 2],
        has_gpus: true,
        ..COMPACT
    },
    InstallationProfile {
        name: "day2",
        purpose: "a worker that joins the installed cluster",
        joining: 1,
        ..COMPACT
    },
];

impl InstallationProfile {
    /// Parses the name of a profile. Errors: a text with all names.
    pub fn parse(name: &str) -> Result<&'static Self, String> {
        let found = PROFILES.iter().find(|profile| profile.name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
            format!("{name:?} is none of {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for profile in PROFILES {
            let found = InstallationProfile::parse(profile.name).unwrap();
            assert!(std::ptr::eq(found, profile), "{}", profile.name);
        }
        assert!(
            InstallationProfile::parse("2+0")
                .unwrap_err()
                .contains("sno")
        );
    }
}
