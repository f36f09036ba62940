//! Results of checks, and their JSON form.

use serde::{Deserialize, Serialize};

/// State of one subject of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    /// It works.
    Passed,
    /// It works now, or is needed by some sites only.
    Warning,
    /// It does not work.
    Failed,
}

impl CheckStatus {
    /// The word of the JSON form.
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

/// Subject area of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckGroup {
    /// DNS names.
    Dns,
    /// Clocks.
    Time,
    /// Disks, memory and ports of this machine.
    Machine,
    /// Certificates in files, and in TLS handshakes.
    Certificates,
    /// Registry, database, and the servers that agents call.
    Services,
    /// Boot images, releases and images of agents in the registry, catalogs.
    Images,
    /// Confinement of programs out of images.
    Sandbox,
}

impl CheckGroup {
    /// The word of the JSON form.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Time => "time",
            Self::Machine => "machine",
            Self::Certificates => "certificates",
            Self::Services => "services",
            Self::Images => "images",
            Self::Sandbox => "sandbox",
        }
    }
}

/// Result for one subject of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// Id of the check, and behind a colon its subject if it has several.
    pub id: String,
    /// Subject area.
    pub group: CheckGroup,
    /// Whether it works.
    pub status: CheckStatus,
    /// The observation.
    pub finding: String,
    /// The action that makes it pass; empty when it does.
    pub remedy: String,
}

/// All results, in the order of the table of checks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoctorReport {
    /// One for each subject of each check.
    pub checks: Vec<CheckResult>,
}

impl DoctorReport {
    /// Whether a subject does not work.
    pub fn has_failures(&self) -> bool {
        self.count(CheckStatus::Failed) > 0
    }

    /// Number of results with this status.
    pub fn count(&self, status: CheckStatus) -> usize {
        self.checks
            .iter()
            .filter(|one| one.status == status)
            .count()
    }
}
