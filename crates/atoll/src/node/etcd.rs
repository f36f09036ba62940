//! The way of commands to etcd.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use etcd::{EtcdAddress, EtcdCluster, EtcdCredentials, EtcdError, EtcdView};
use kubernetes::EtcdAccess;
use net::resolve::Resolver;
use service::{Error, ResultExt as _};

use super::input;
use crate::cluster_args::ClusterArgs;
use crate::terminal;

const DOING: &str = "preparing the connection to etcd";
/// Several times the platform's longest election timeout, 2.5 s.
const ELECTION: Duration = Duration::from_secs(12);
const POLL: Duration = Duration::from_secs(1);

/// etcd's endpoints and the certificate of a client.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct EtcdArgs {
    /// Client URL of a member, as https://192.0.2.10:2379; by default those that the cluster's records have. Repeatable
    #[arg(long = "etcd-endpoint", value_name = "URL", requires_all = ["ca", "certificate", "key"])]
    endpoints: Vec<EtcdAddress>,
    /// Authorities of the members' certificates (PEM)
    #[arg(long = "etcd-ca", value_name = "FILE", requires = "endpoints")]
    ca: Option<PathBuf>,
    /// Certificate of a client (PEM)
    #[arg(long = "etcd-cert", value_name = "FILE", requires = "endpoints")]
    certificate: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long = "etcd-key", value_name = "FILE", requires = "endpoints")]
    key: Option<PathBuf>,
}

impl EtcdArgs {
    /// Prepares the connection: by the files that are named, else by the records of the cluster.
    ///
    /// Errors: a file or record is missing, or no certificate.
    pub(crate) async fn connect(&self, cluster: &ClusterArgs) -> Result<EtcdCluster, Error> {
        let access = if let (Some(ca), Some(certificate), Some(key)) =
            (&self.ca, &self.certificate, &self.key)
        {
            EtcdAccess {
                endpoints: self.endpoints.clone(),
                credentials: EtcdCredentials {
                    authorities_pem: input::text(ca)?,
                    certificate_pem: input::text(certificate)?,
                    key_pem: input::text(key)?.into(),
                },
            }
        } else {
            let access = cluster.connect().await?.etcd_access().await;
            access.doing(DOING)?
        };
        let EtcdAccess {
            endpoints,
            credentials,
        } = access;
        let etcd = EtcdCluster::new(endpoints, &credentials, Resolver::system());
        etcd.doing(DOING)
    }
}

/// Observes the cluster, patiently: right after a member's failure, the others elect a leader and serve no reads.
///
/// Errors: no voter serves reads within [`ELECTION`].
pub(crate) async fn observe_elected(etcd: &EtcdCluster) -> Result<EtcdView, EtcdError> {
    let since = Instant::now();
    loop {
        match etcd.observe().await {
            Err(EtcdError::NoVoter { .. }) if since.elapsed() < ELECTION => {
                terminal::progress("waiting for an election of etcd");
                tokio::time::sleep(POLL).await;
            }
            observed => {
                terminal::clear_progress();
                return observed;
            }
        }
    }
}
