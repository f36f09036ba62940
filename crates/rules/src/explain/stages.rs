//! Stages of installations: their goal, and the remedy when they take too long.

use model::cluster::FinalizingStage;
use model::host::HostStage;

/// Texts of a stage.
pub(super) struct StageRow {
    /// End of the stage.
    pub(super) required: &'static str,
    /// Remedy when it takes too long.
    pub(super) fix: &'static str,
}

const fn row(required: &'static str, fix: &'static str) -> StageRow {
    StageRow { required, fix }
}

/// The row of a host's stage.
pub(super) fn of_host(stage: HostStage) -> StageRow {
    use HostStage as S;
    match stage {
        S::StartingInstallation | S::Installing => row(
            "the installer runs on the host",
            "Check that the agent runs on the host and that the host reaches the registry.",
        ),
        S::WritingImageToDisk => row(
            "the system's image is written to the installation disk",
            "Check the speed and the health of the installation disk, and the log of the agent.",
        ),
        S::CopyingRegistryDataToDisk => row(
            "the data of the registry are copied to the installation disk",
            "Check the speed and the free space of the installation disk.",
        ),
        S::WaitingForControlPlane => row(
            "two masters have joined",
            "Check the masters first: this host waits until they have joined.",
        ),
        S::WaitingForBootkube => row(
            "the bootstrap control plane runs",
            "Check the log of bootkube on the bootstrap host, and that it reaches the registry.",
        ),
        S::WaitingForController => row(
            "the installer's controller runs on the masters",
            "Check that the masters have joined, and that they reach the registry.",
        ),
        S::Rebooting => row(
            "the host boots from its installation disk",
            "Check the console: make the host boot from its installation disk.",
        ),
        S::WaitingForIgnition => row(
            "the host downloads its ignition",
            "Check that the host reaches port 22623 of the API address.",
        ),
        S::Configuring => row(
            "the kubelet of the host registers its node",
            "Check the console of the host, and that it reaches the API and the registry.",
        ),
        S::Joined => row(
            "the node is ready",
            "Check the node's conditions and pending certificate requests (oc get nodes, oc get csr).",
        ),
        S::Done => row(
            "the installation of the host has ended",
            "Nothing is to be done.",
        ),
        S::Failed => row(
            "an installation without failure",
            "Read the host's logs, remove the cause, and reset the installation.",
        ),
    }
}

/// The row of a stage of finalizing.
pub(super) fn of_finalizing(stage: FinalizingStage) -> StageRow {
    use FinalizingStage as S;
    match stage {
        S::WaitingForClusterOperators => row(
            "every operator of the platform is available",
            "Check the operators that are not available (oc get clusteroperators).",
        ),
        S::AddingRouterCa => row(
            "the certificate of ingress is part of the kubeconfig",
            "Check the operator ingress, and that the cluster reaches this service.",
        ),
        S::ApplyingOlmManifests => row(
            "the manifests of added operators are applied",
            "Check the log of the installer's controller, and the catalogs of operators.",
        ),
        S::WaitingForOlmOperatorsCsvInitialization | S::WaitingForOlmOperatorsCsv => row(
            "added operators are installed",
            "Check the subscriptions of added operators (oc get subscriptions,csv -A).",
        ),
        S::WaitingForOLMOperatorSetupJobs => row(
            "the setup jobs of added operators have ended",
            "Check the jobs of added operators (oc get jobs -A).",
        ),
        S::Done => row(
            "the controller reports the end",
            "Check that the cluster reaches this service.",
        ),
    }
}
