//! `atoll node`: the nodes of a cluster, and their repair.

mod approve;
mod backup;
mod config;
mod etcd;
mod image;
mod input;
mod joining;
mod replace;
mod restore;
mod status;

use clap::Subcommand;
use service::Error;

/// Subcommands for nodes.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum NodeCommand {
    /// Show nodes with their machines and hosts, pending requests and certificates on one screen
    Status(status::NodeStatusArgs),
    /// Approve the certificate requests of one node: exactly those that only this node can have made
    Approve(approve::NodeApproveArgs),
    /// Save a checked snapshot of etcd, with everything that the cluster stores
    Backup(backup::NodeBackupArgs),
    /// Replace a failed or unwanted control node: run it again to continue after a stop of any kind
    Replace(Box<replace::NodeReplaceArgs>),
    /// Guide through the restoration of etcd when its quorum is lost
    Restore(restore::NodeRestoreArgs),
    /// Write the Ignition configuration of a node that joins the cluster
    Config(Box<config::NodeConfigArgs>),
    /// Write a live image that installs a node by itself, which then joins the cluster
    Image(Box<image::NodeImageArgs>),
}

/// Runs the subcommand.
///
/// Errors: the cluster cannot be read, a request not be approved, a snapshot, configuration or image not be saved, or a
/// node not be replaced.
pub(crate) fn run(command: &NodeCommand) -> Result<(), Error> {
    match command {
        NodeCommand::Status(arguments) => status::run(arguments),
        NodeCommand::Approve(arguments) => approve::run(arguments),
        NodeCommand::Backup(arguments) => backup::run(arguments),
        NodeCommand::Replace(arguments) => replace::run(arguments),
        NodeCommand::Restore(arguments) => restore::run(arguments),
        NodeCommand::Config(arguments) => config::run(arguments),
        NodeCommand::Image(arguments) => image::run(arguments),
    }
}
