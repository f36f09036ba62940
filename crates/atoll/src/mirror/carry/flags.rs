//! What people say on the command line of a run.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use oci::{Client, ClientOptions};
use service::Error;

use super::destination::Destination;
use crate::mirror::releases;

/// What is carried, from where, and how.
#[derive(Debug, Clone, Args)]
pub(crate) struct Arguments {
    /// file://FOLDER for archives, or docker://HOST[:PORT][/NAMESPACE]
    pub(super) target: Option<Destination>,
    /// An archive, or the folder with the archives of a run, instead of registries
    #[arg(long, value_name = "PATH")]
    pub(super) from: Option<PathBuf>,
    /// The ImageSetConfiguration
    #[arg(short, long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Folder for what is temporary, and for results
    #[arg(long, value_name = "DIR", default_value = "oc-mirror-workspace")]
    pub(super) dir: PathBuf,
    /// Publish archives whatever the target has
    #[arg(long)]
    pub(super) skip_metadata_check: bool,
    /// Carry everything again that former runs have carried
    #[arg(long)]
    pub(super) ignore_history: bool,
    /// Let images stay in the target that the set does not have any more, and publish whatever the target has
    #[arg(long)]
    pub(super) skip_pruning: bool,
    /// Delete images in the target that the set does not have any more, also when these are many
    #[arg(long, conflicts_with = "skip_pruning")]
    pub(super) prune: bool,
    /// Sign archives: file with an ed25519 key in PEM, as openssl genpkey makes it
    #[arg(long, value_name = "FILE")]
    pub(super) sign: Option<PathBuf>,
    /// Tell what would be carried, and write mapping.txt; for a registry, write pruning-plan.json as well
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Tell why the bundles and images of that name are carried; a part of the name will do
    #[arg(long, value_name = "NAME")]
    pub(super) why: Option<String>,
    /// Write results for later clusters, too: ImageDigestMirrorSet, ImageTagMirrorSet, ClusterCatalog, registries.conf
    #[arg(long)]
    pub(super) all_results: bool,
    /// Go on with other images when one cannot be carried
    #[arg(long)]
    pub(super) continue_on_error: bool,
    /// Pass by images that are named by catalogs and missing in their registries
    #[arg(long)]
    pub(super) skip_missing: bool,
    /// Leave behind what is attached to images: signatures, attestations, lists of components
    #[arg(long)]
    pub(super) remove_signatures: bool,
    /// Transfers at a time
    #[arg(long, value_name = "N", default_value = "8")]
    pub(super) max_per_registry: NonZeroUsize,
    /// Most components of a repository's name in the target; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) max_nested_paths: usize,
    /// File of logins for registries, as a pull secret has them; else the usual files of podman and docker
    #[arg(long, value_name = "FILE")]
    pub(super) authfile: Option<PathBuf>,
    /// Certificates (PEM) that are trusted besides the system's
    #[arg(long, value_name = "FILE")]
    pub(super) ca: Option<PathBuf>,
    #[command(flatten)]
    pub(super) releases: releases::Arguments,
    /// Accept sources without TLS
    #[arg(long)]
    pub(super) source_use_http: bool,
    /// Accept any certificate of a source
    #[arg(long)]
    pub(super) source_skip_tls: bool,
    /// Accept a target without TLS
    #[arg(long)]
    pub(super) dest_use_http: bool,
    /// Accept any certificate of the target
    #[arg(long)]
    pub(super) dest_skip_tls: bool,
}

impl Arguments {
    /// A client of registries, with the logins and certificates that are named.
    ///
    /// Errors: a file of them that cannot be read.
    pub(super) fn client(&self, insecure: bool) -> Result<Client, model::Error> {
        let unusable = |e: Error| model::Error::invalid("logins", e.to_string());
        let options = ClientOptions {
            credentials: service::registry_logins(self.authfile.as_deref()).map_err(unusable)?,
            ca_pem: self.ca_pem()?,
            insecure,
            ..ClientOptions::default()
        };
        Client::new(options)
    }

    /// Certificates that are trusted besides the system's.
    ///
    /// Errors: Invalid – the file cannot be read.
    pub(super) fn ca_pem(&self) -> Result<Option<Vec<u8>>, model::Error> {
        let ca_pem = self.ca.as_ref().map(std::fs::read).transpose();
        ca_pem.map_err(|e| model::Error::invalid("ca", e.to_string()))
    }
}
