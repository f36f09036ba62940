//! Closed sets of values of hosts: kinds, states, roles and stages.

use crate::wire::wire_enum;

wire_enum! {
    /// Values of `HostKind`.
    pub enum HostKind {
        Host = "Host",
        AddToExistingClusterHost = "AddToExistingClusterHost",
    }
}

wire_enum! {
    /// Values of `HostStatus`.
    pub enum HostStatus {
        Discovering = "discovering",
        Known = "known",
        Disconnected = "disconnected",
        Insufficient = "insufficient",
        Disabled = "disabled",
        PreparingForInstallation = "preparing-for-installation",
        PreparingFailed = "preparing-failed",
        PreparingSuccessful = "preparing-successful",
        PendingForInput = "pending-for-input",
        Installing = "installing",
        InstallingInProgress = "installing-in-progress",
        InstallingPendingUserAction = "installing-pending-user-action",
        ResettingPendingUserAction = "resetting-pending-user-action",
        Installed = "installed",
        Error = "error",
        Resetting = "resetting",
        AddedToExistingCluster = "added-to-existing-cluster",
        Cancelled = "cancelled",
        Binding = "binding",
        Unbinding = "unbinding",
        UnbindingPendingUserAction = "unbinding-pending-user-action",
        KnownUnbound = "known-unbound",
        DisconnectedUnbound = "disconnected-unbound",
        InsufficientUnbound = "insufficient-unbound",
        DisabledUnbound = "disabled-unbound",
        DiscoveringUnbound = "discovering-unbound",
        Reclaiming = "reclaiming",
        ReclaimingRebooting = "reclaiming-rebooting",
    }
}

wire_enum! {
    /// Values of `MediaStatus`.
    pub enum MediaStatus {
        Connected = "connected",
        Disconnected = "disconnected",
    }
}

wire_enum! {
    /// Values of `HostRole`.
    pub enum HostRole {
        AutoAssign = "auto-assign",
        Master = "master",
        Arbiter = "arbiter",
        Worker = "worker",
        Bootstrap = "bootstrap",
    }
}

wire_enum! {
    /// Values of `HostStage`.
    pub enum HostStage {
        StartingInstallation = "Starting installation",
        WaitingForControlPlane = "Waiting for control plane",
        WaitingForBootkube = "Waiting for bootkube",
        WaitingForController = "Waiting for controller",
        Installing = "Installing",
        WritingImageToDisk = "Writing image to disk",
        CopyingRegistryDataToDisk = "Copying registry data to disk",
        Rebooting = "Rebooting",
        WaitingForIgnition = "Waiting for ignition",
        Configuring = "Configuring",
        Joined = "Joined",
        Done = "Done",
        Failed = "Failed",
    }
}

wire_enum! {
    /// Values of `DiskRole`.
    pub enum DiskRole {
        None = "none",
        Install = "install",
    }
}

wire_enum! {
    /// Values of `CertificateVerification`.
    pub enum CertificateVerification {
        Enabled = "Enabled",
        Disabled = "Disabled",
    }
}
