//! Arguments of `atoll node replace`.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use replacement::{NodePlace, ReplacementRequest};
use url::Url;

use crate::cluster_args::ClusterArgs;
use crate::host::boot::{disc_url, firmware_url};
use crate::node::etcd::EtcdArgs;
use crate::output_format::FormatArgs;

/// Arguments of `replace`.
#[derive(Debug, Clone, Args)]
pub(crate) struct NodeReplaceArgs {
    /// Name of the control node that leaves
    pub(super) node: String,
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
    #[command(flatten)]
    pub(super) etcd: EtcdArgs,
    /// Show the observations and the steps; change nothing
    #[arg(long = "dry-run", alias = "plan")]
    pub(super) plan: bool,
    #[command(flatten)]
    pub(super) format: FormatArgs,
    #[command(flatten)]
    pub(super) wish: ReplacementWish,
    #[command(flatten)]
    pub(super) boot: NodeBootArgs,
    /// Undo the reversible steps of an unfinished replacement, and end it
    #[arg(long, conflicts_with_all = ["plan", "drop_learner"])]
    pub(super) abort: bool,
    /// Remove the new member while it is a learner that does not catch up; the next run adds it again
    #[arg(long, conflicts_with = "plan")]
    pub(super) drop_learner: bool,
    /// Folder of journals, snapshots and saved records, which hold secrets
    #[arg(
        long = "dir",
        alias = "state",
        value_name = "DIR",
        default_value = "replacements"
    )]
    pub(super) state: PathBuf,
    /// Longest wait of one step, in minutes; a run that ended can be repeated
    #[arg(long, value_name = "MINUTES", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=10_080))]
    pub(super) step_limit: u64,
}

/// The wish that a replacement begins with. A run that continues has it in its journal.
#[derive(Debug, Clone, Args)]
pub(super) struct ReplacementWish {
    /// Name of the new node; by default that of the old one
    #[arg(long, value_name = "NAME", requires = "new_address")]
    new_name: Option<String>,
    /// Address of the new node
    #[arg(long, value_name = "IP", requires = "new_name")]
    new_address: Option<IpAddr>,
    /// Secret, BareMetalHost and Machine of the new node (YAML or JSON), for one with another name or BMC. By default those
    /// of the old node
    #[arg(long, value_name = "FILE")]
    pub(super) records: Option<PathBuf>,
    /// The node leaves although its member of etcd is healthy: first another one joins
    #[arg(long)]
    unwanted: bool,
    /// Another lost node: its member leaves, too, before one joins. Repeatable
    #[arg(long, value_name = "NODE")]
    also_lost: Vec<String>,
    /// Continue without a snapshot of etcd
    #[arg(long)]
    no_snapshot: bool,
    /// You have seen that the old machine is off; needed where its BMC cannot be asked. Your name is put on record
    #[arg(long)]
    confirm_off: bool,
}

/// The boot of the new node.
#[derive(Debug, Clone, Args)]
pub(super) struct NodeBootArgs {
    /// Boot image of the new node for its BMC's virtual media, as http://192.0.2.1:8080/control-2.iso; see `atoll node
    /// image`. Without it, or without a BMC, you boot the machine
    #[arg(long, value_name = "URL", value_parser = disc_url)]
    pub(super) image: Option<Url>,
    /// The same by UEFI HTTP boot, which keeps Secure Boot
    #[arg(long, value_name = "URL", value_parser = firmware_url, conflicts_with = "image")]
    pub(super) http_boot: Option<Url>,
    /// CA certificates of the BMCs (PEM) to trust in addition to the system's
    #[arg(long, alias = "ca", value_name = "FILE")]
    pub(super) bmc_ca: Option<PathBuf>,
}

impl ReplacementWish {
    /// The request for a node; `person` confirms that it is off, if it was said.
    pub(super) fn request(&self, node: &str, person: &str) -> ReplacementRequest {
        let place = self.new_name.clone().zip(self.new_address);
        ReplacementRequest {
            node: node.to_owned(),
            new: place.map(|(name, address)| NodePlace { name, address }),
            is_unwanted: self.unwanted,
            confirmed_off_by: self.confirm_off.then(|| person.to_owned()),
            also_lost: self.also_lost.iter().cloned().collect::<BTreeSet<_>>(),
            skips_snapshot: self.no_snapshot,
        }
    }
}
