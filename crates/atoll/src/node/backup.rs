//! `atoll node backup`.

use std::path::PathBuf;

use clap::Args;
use etcd::quorum::MemberRole;
use etcd::{EtcdCluster, EtcdEndpoint, MAX_SNAPSHOT_BYTES, SnapshotFile, save_snapshot};
use model::size::mib;
use service::runtime;
use service::{Error, ResultExt as _};

use super::etcd::EtcdArgs;
use crate::cluster_args::ClusterArgs;
use crate::output_format::FormatArgs;
use crate::terminal;

/// Arguments of `backup`.
#[derive(Debug, Clone, Args)]
pub(crate) struct NodeBackupArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    etcd: EtcdArgs,
    /// The snapshot; it must not exist. It has all secrets of the cluster
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    format: FormatArgs,
}

/// Saves a checked snapshot of etcd.
///
/// Errors: no healthy voter; the snapshot is incomplete or damaged; the file cannot be written.
pub(super) fn run(arguments: &NodeBackupArgs) -> Result<(), Error> {
    let saved = runtime::block_on(async {
        let etcd = arguments.etcd.connect(&arguments.cluster).await?;
        let source = source(&etcd).await?;
        let saved = save_snapshot(&source, &arguments.output, MAX_SNAPSHOT_BYTES).await;
        saved.doing("saving a snapshot of etcd")
    })??;
    if arguments.format.is_json() {
        let json = serde_json::to_string(&saved);
        terminal::print(&json.doing("writing JSON")?);
    } else {
        let SnapshotFile {
            path,
            size_bytes,
            sha256,
        } = saved;
        let size = mib(size_bytes);
        terminal::print(&format!("{} ({size}), sha256 {sha256}", path.display()));
    }
    Ok(())
}

/// A healthy voter that does not lead, if there is one: a snapshot is work for its member.
async fn source(etcd: &EtcdCluster) -> Result<EtcdEndpoint, Error> {
    let failed = |error| Error::new("looking for a healthy member of etcd", error);
    let view = etcd.observe().await.map_err(failed)?;
    let leader = view.leader().map(|leader| leader.member.id);
    let voters = view.members.iter();
    let voters = voters.filter(|it| it.is_healthy() && it.member.role == MemberRole::Voter);
    let voter = voters.max_by_key(|it| Some(it.member.id) != leader);
    let Some(voter) = voter else {
        let reason = "no member serves reads: quorum is lost";
        return Err(Error::new("looking for a healthy member of etcd", reason));
    };
    etcd.endpoint_of(&view, voter.member.id).map_err(failed)
}
