//! Mechanisms of confinement as a table: name, consequence and remedy if missing.

use serde::{Deserialize, Serialize};

/// A confinement mechanism of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Mechanism {
    OwnRoot,
    OwnProcesses,
    OwnNetwork,
    OwnIpc,
    OwnUser,
    NoCapabilities,
    NoNewPrivileges,
    Landlock,
    LandlockScopes,
    Seccomp,
    Limits,
}

/// Description of a mechanism.
struct MechanismRow {
    mechanism: Mechanism,
    name: &'static str,
    without: &'static str,
    remedy: &'static str,
}

const NAMESPACES: &str =
    "allow user namespaces (sysctl user.max_user_namespaces above 0), or grant CAP_SYS_ADMIN";

static TABLE: &[MechanismRow] = &[
    MechanismRow {
        mechanism: Mechanism::OwnRoot,
        name: "mount namespace",
        without: "only Landlock keeps files of the machine away; disk use is sampled instead of bounded by a tmpfs",
        remedy: NAMESPACES,
    },
    MechanismRow {
        mechanism: Mechanism::OwnProcesses,
        name: "PID namespace",
        without: "programs see other processes of their user; descendants are found one by one when they are killed",
        remedy: NAMESPACES,
    },
    MechanismRow {
        mechanism: Mechanism::OwnNetwork,
        name: "network namespace",
        without: "only seccomp keeps the network away",
        remedy: NAMESPACES,
    },
    MechanismRow {
        mechanism: Mechanism::OwnIpc,
        name: "IPC and UTS namespaces",
        without: "only seccomp keeps shared memory and message queues away",
        remedy: NAMESPACES,
    },
    MechanismRow {
        mechanism: Mechanism::OwnUser,
        name: "unprivileged user",
        without: "programs run as root without capabilities and own its files as far as they see them",
        remedy: "run the service as a user of its own, or grant CAP_SETUID, CAP_SETGID and CAP_CHOWN",
    },
    MechanismRow {
        mechanism: Mechanism::NoCapabilities,
        name: "no capabilities",
        without: "programs keep the privileges of the service",
        remedy: "run the service as a user of its own",
    },
    MechanismRow {
        mechanism: Mechanism::NoNewPrivileges,
        name: "no new privileges",
        without: "programs may start others that are setuid",
        remedy: "use Linux 3.5 or newer",
    },
    MechanismRow {
        mechanism: Mechanism::Landlock,
        name: "Landlock",
        without: "only the mount namespace keeps files of the machine away",
        remedy: "use Linux 5.13 or newer with landlock in the boot parameter lsm=",
    },
    MechanismRow {
        mechanism: Mechanism::LandlockScopes,
        name: "Landlock network rules and scopes",
        without: "only namespaces and seccomp keep TCP, abstract sockets and signals away",
        remedy: "use Linux 6.12 or newer",
    },
    MechanismRow {
        mechanism: Mechanism::Seccomp,
        name: "seccomp",
        without: "programs may use every system call: sockets, mounts, kernel keys",
        remedy: "use a kernel with CONFIG_SECCOMP_FILTER on x86_64 or aarch64",
    },
    MechanismRow {
        mechanism: Mechanism::Limits,
        name: "resource limits",
        without: "memory and processes are bounded by sampling alone",
        remedy: "raise the hard limits of the service (ulimit -H)",
    },
];

impl Mechanism {
    /// All, in the order of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.mechanism)
    }

    /// Name in kernel documentation.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Consequence if it is missing.
    pub fn without(self) -> &'static str {
        self.row().without
    }

    /// Remedy for operators if it is missing.
    pub fn remedy(self) -> &'static str {
        self.row().remedy
    }

    fn row(self) -> &'static MechanismRow {
        // A test checks that each variant has a row; the fallback is unreachable.
        TABLE
            .iter()
            .find(|row| row.mechanism == self)
            .unwrap_or(&TABLE[0])
    }
}

/// An unavailable mechanism.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// Error of the kernel.
    pub reason: String,
}

/// Active and missing mechanisms of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfinementReport {
    /// Active mechanisms.
    pub active: Vec<Mechanism>,
    /// Missing mechanisms.
    pub missing: Vec<Missing>,
}

impl ConfinementReport {
    /// Records whether `mechanism` is active, and returns its value if it is.
    pub(crate) fn note<T, E: std::fmt::Display>(
        &mut self,
        mechanism: Mechanism,
        outcome: Result<T, E>,
    ) -> Option<T> {
        match outcome {
            Ok(value) => {
                self.active.push(mechanism);
                Some(value)
            }
            Err(error) => {
                let reason = error.to_string();
                self.missing.push(Missing { mechanism, reason });
                None
            }
        }
    }

    /// Whether `mechanism` is active.
    pub fn has(&self, mechanism: Mechanism) -> bool {
        self.active.contains(&mechanism)
    }

    /// Whether an essential mechanism is missing: isolation of files (Landlock or a root of its own), or one of seccomp,
    /// no new privileges and no capabilities.
    pub fn lacks_essentials(&self) -> bool {
        let is_isolated = self.has(Mechanism::Landlock) || self.has(Mechanism::OwnRoot);
        let is_filtered = [
            Mechanism::Seccomp,
            Mechanism::NoNewPrivileges,
            Mechanism::NoCapabilities,
        ]
        .into_iter()
        .all(|mechanism| self.has(mechanism));
        !is_isolated || !is_filtered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mechanism_has_its_own_row() {
        for mechanism in Mechanism::all() {
            assert_eq!(mechanism.row().mechanism, mechanism);
        }
        // Limits is the last variant.
        assert_eq!(Mechanism::all().count(), Mechanism::Limits as usize + 1);
    }

    #[test]
    fn isolation_of_files_and_seccomp_are_essential() {
        let mut report = ConfinementReport {
            active: vec![
                Mechanism::Seccomp,
                Mechanism::NoNewPrivileges,
                Mechanism::NoCapabilities,
            ],
            missing: Vec::new(),
        };
        assert!(report.lacks_essentials());
        report.active.push(Mechanism::OwnRoot);
        assert!(!report.lacks_essentials());
        report.active.remove(0);
        assert!(report.lacks_essentials());
    }
}
