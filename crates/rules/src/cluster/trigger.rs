//! Triggers of a cluster.

/// Triggers without parameters: the keys of the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// An input of a decision may have changed, or time has passed.
    Refresh,
    /// The user requests the installation.
    Prepare,
    /// The user cancels the installation.
    Cancel,
    /// The user resets the cluster.
    Reset,
    /// The user adds hosts to the installed cluster.
    AddHosts,
}

/// A request of the user to a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// Requests the installation.
    Prepare,
    /// Cancels the installation.
    Cancel,
    /// Resets the cluster.
    Reset,
    /// Adds hosts to the installed cluster.
    AddHosts,
}
