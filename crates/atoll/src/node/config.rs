//! `atoll node config`.

use std::path::PathBuf;

use clap::Args;
use ignition::{IgnitionConfig, NodeConfig};
use service::file::write_atomic;
use service::{Error, ResultExt as _};

use super::joining::JoiningNodeArgs;
use crate::terminal;

/// Mode of the file, which has the hash of a password and keys of networks.
const OWNER_ONLY: u32 = 0o600;

/// Arguments of `config`.
#[derive(Debug, Clone, Args)]
pub(crate) struct NodeConfigArgs {
    #[command(flatten)]
    node: JoiningNodeArgs,
    /// Output file, with mode 600. Default: standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the output file
    #[arg(long, short, requires = "output")]
    force: bool,
}

/// Writes the Ignition configuration of a node that joins a cluster.
///
/// Errors: the files or the records of the cluster give none; the output cannot be written.
pub(super) fn run(arguments: &NodeConfigArgs) -> Result<(), Error> {
    let config = render(&arguments.node.read()?)?;
    let mut json = config.to_json();
    let Some(path) = &arguments.output else {
        terminal::print(&String::from_utf8_lossy(&json));
        return Ok(());
    };
    if path.exists() && !arguments.force {
        let doing = format!("writing {}", path.display());
        return Err(Error::new(doing, "it exists; use --force to replace it"));
    }
    json.push(b'\n');
    write_atomic(path, &json, OWNER_ONLY)
}

fn render(node: &NodeConfig) -> Result<IgnitionConfig, Error> {
    node.render()
        .doing(|| format!("making the configuration of {}", node.host_name))
}
