//! Triggers of a host.

use model::host::HostStage;

/// Triggers without parameters: the keys of the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// An input of a decision may have changed, or time has passed.
    Refresh,
    /// The agent registers (again).
    Register,
    /// The installer reports a stage.
    Progress,
    /// The installer could not be started.
    InstallationFailed,
    /// The agent cannot read its boot medium.
    MediaDisconnected,
    /// The cluster's installation was cancelled.
    Cancel,
    /// The cluster, or a host that joins one, is reset.
    Reset,
    /// The user retries a failed host of a cluster that is being installed.
    Retry,
    /// The user requests the installation of a day-2 host.
    Install,
    /// The user binds the host to a cluster.
    Bind,
    /// The user unbinds the host.
    Unbind,
    /// The discovery image is in the boot folder of a reclaimed host.
    RebootForReclaim,
    /// A reclaimed host could not store the discovery image.
    ReclaimFailed,
}

/// A trigger with its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trigger {
    /// The agent registers again.
    Register {
        /// Image of the agent.
        agent_version: String,
    },
    /// The installer reports a stage.
    Progress {
        /// The stage.
        stage: HostStage,
        /// Additional text of the report.
        info: String,
    },
    /// The installer could not be started.
    InstallationFailed {
        /// Its error text.
        reason: String,
    },
    /// The agent cannot read its boot medium.
    MediaDisconnected,
    /// The cluster's installation was cancelled.
    Cancel,
    /// The cluster, or the host itself, is reset.
    Reset,
    /// The user retries a failed host of a cluster that is being installed.
    Retry,
    /// The user requests the installation of a day-2 host.
    Install,
    /// The user binds the host to the cluster passed along.
    Bind,
    /// The user unbinds the host.
    Unbind,
    /// The discovery image is in the boot folder of a reclaimed host.
    RebootForReclaim,
    /// A reclaimed host could not store the discovery image.
    ReclaimFailed,
}

impl Trigger {
    /// Key of the trigger in the rules.
    pub fn on(&self) -> On {
        match self {
            Self::Register { .. } => On::Register,
            Self::Progress { .. } => On::Progress,
            Self::InstallationFailed { .. } => On::InstallationFailed,
            Self::MediaDisconnected => On::MediaDisconnected,
            Self::Cancel => On::Cancel,
            Self::Reset => On::Reset,
            Self::Retry => On::Retry,
            Self::Install => On::Install,
            Self::Bind => On::Bind,
            Self::Unbind => On::Unbind,
            Self::RebootForReclaim => On::RebootForReclaim,
            Self::ReclaimFailed => On::ReclaimFailed,
        }
    }
}
