//! `atoll node image`.

use std::path::{Path, PathBuf};

use clap::Args;
use ignition::cpio::{CpioMember, DIRECTORY, REGULAR};
use ignition::{DiskPath, LiveInstaller, NodeConfig, archive};
use image_service::content::ContentPieces;
use image_service::image::{BaseImage, InitrdArchives, KargsChange, customised, minimal_iso};
use model::size::mib;
use rand::RngExt as _;
use service::{Error, ResultExt as _};

use super::joining::JoiningNodeArgs;
use crate::image::output::OutputArgs;
use crate::image::{check_rootfs_url, open};
use crate::terminal;

/// Folder of the initrd whose connection files early boot uses. Source: coreos-installer, `iso network embed`.
const EARLY_CONNECTIONS: &str = "etc/coreos-firstboot-network";

/// Arguments of `image`.
#[derive(Debug, Clone, Args)]
pub(crate) struct NodeImageArgs {
    #[command(flatten)]
    node: JoiningNodeArgs,
    /// CoreOS live ISO of the cluster's version: published, or from the image service
    #[arg(long, value_name = "ISO")]
    base: Option<PathBuf>,
    /// Disk of the machine on which the node is installed, as /dev/sda; its content is lost
    #[arg(long, value_name = "DISK")]
    install_to: DiskPath,
    /// Leave the root file system out, for BMCs that take no large images: early boot downloads it from this URL
    #[arg(long, value_name = "URL")]
    rootfs_url: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Writes a live image that installs a node by itself, and restarts into it.
///
/// Errors: as those of a node's configuration; the base cannot be used; the output exists or cannot be written.
pub(super) fn run(arguments: &NodeImageArgs) -> Result<(), Error> {
    let base = base(arguments.base.as_deref())?;
    let (node, disk) = (arguments.node.read()?, arguments.install_to.clone());
    let mark = hex::encode(rand::rng().random::<[u8; 8]>());
    let installer = LiveInstaller { node, disk, mark };
    let content = with_installer(&base, &installer, arguments.rootfs_url.as_deref());
    let content = content.doing(|| format!("making the image of {}", arguments.node.name()))?;
    arguments.output.write_private(&content)?;
    let path = arguments.output.path().display();
    let (name, disk) = (arguments.node.name(), &arguments.install_to);
    let size = mib(content.length());
    terminal::print(&format!(
        "{path} ({size}): boots, installs {name} on {disk} and restarts; then approve its requests: atoll node approve {name} --wait"
    ));
    Ok(())
}

fn base(path: Option<&Path>) -> Result<BaseImage, Error> {
    path.map_or_else(
        || {
            let reason = "name one by --base: a published live ISO of the cluster's version, or the full.iso of an infra-env of the site's image service (`atoll status` shows its address), as http://192.0.2.1:8888/byid/…/full.iso";
            Err(Error::new("looking for a live image", reason))
        },
        open,
    )
}

fn with_installer(
    base: &BaseImage,
    installer: &LiveInstaller,
    rootfs_url: Option<&str>,
) -> Result<ContentPieces, Box<dyn std::error::Error + Send + Sync>> {
    let config = installer.render()?.to_json();
    let mut archives = InitrdArchives::default();
    // An image without a root file system needs the network for it.
    if rootfs_url.is_some() || base.rootfs().length() == 0 {
        archives.ramdisk = early_network(&installer.node)?.map(Into::into);
    }
    let kargs = KargsChange::default();
    Ok(match rootfs_url {
        None => customised(base, Some(&config), archives, &kargs)?,
        Some(url) => {
            check_rootfs_url(url)?;
            minimal_iso(base, &config, archives, &kargs, url)?
        }
    })
}

/// The archive with the connections; none if there are none. Its names are relative: so coreos-installer finds them.
fn early_network(node: &NodeConfig) -> Result<Option<Vec<u8>>, ignition::Error> {
    if node.connections.is_empty() {
        return Ok(None);
    }
    let files: Vec<_> = node
        .connections
        .iter()
        .map(|connection| {
            let name = format!("{EARLY_CONNECTIONS}/{}.nmconnection", connection.interface);
            (name, connection.keyfile.as_bytes())
        })
        .collect();
    // Folders first: the kernel creates none itself.
    let folder = |name| CpioMember {
        name,
        mode: DIRECTORY | 0o755,
        data: &[],
    };
    let mut members = vec![folder("etc"), folder(EARLY_CONNECTIONS)];
    members.extend(files.iter().map(|(name, data)| CpioMember {
        name,
        mode: REGULAR | 0o600,
        data,
    }));
    archive::pack(&members).map(Some)
}
