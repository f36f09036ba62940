//! The cluster of a command: its kubeconfig and context.

use std::path::PathBuf;

use clap::Args;
use kubernetes::{ClusterAddress, KubernetesCluster};
use service::{Error, ResultExt as _};

/// The cluster of a command.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClusterArgs {
    /// kubeconfig of an administrator; by default that of KUBECONFIG, or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; by default the current one
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

impl ClusterArgs {
    /// Prepares the connection.
    ///
    /// Errors: the kubeconfig cannot be read, or lacks the context.
    pub(crate) async fn connect(&self) -> Result<KubernetesCluster, Error> {
        let cluster = KubernetesCluster::new(ClusterAddress {
            kubeconfig: self.kubeconfig.as_deref(),
            context: self.context.as_deref(),
        });
        cluster
            .await
            .doing("preparing the connection to the cluster")
    }
}
