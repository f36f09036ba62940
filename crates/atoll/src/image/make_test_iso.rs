//! `atoll image make-test-iso`: an image to try a site with, where no genuine one is at hand.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use service::{Error, ResultExt as _};
use test_iso::LiveImageOptions;

use crate::terminal;

/// Architectures with a layout of their own.
const ARCHITECTURES: [&str; 3] = ["x86_64", "arm64", "s390x"];

/// Arguments of `make-test-iso`.
#[derive(Debug, Clone, Args)]
pub(crate) struct MakeTestIsoArgs {
    /// Image to write
    image: PathBuf,
    /// Version of the operating system: as `version` in OS_IMAGES
    #[arg(long, value_name = "VERSION", default_value = "418.94.202511191518-0")]
    version: String,
    /// Architecture
    #[arg(long, default_value = ARCHITECTURES[0], value_parser = PossibleValuesParser::new(ARCHITECTURES))]
    arch: String,
    /// Length of the root file system, in MiB; genuine ones have about 1000
    #[arg(long, value_name = "MIB", default_value_t = 101, value_parser = clap::value_parser!(u64).range(1..=4000))]
    rootfs_mib: u64,
    /// Replace a file
    #[arg(long, short)]
    force: bool,
}

/// Writes the image.
///
/// Errors: the file exists, or cannot be written.
pub(super) fn make(arguments: &MakeTestIsoArgs) -> Result<(), Error> {
    let path = &arguments.image;
    let doing = || format!("writing {}", path.display());
    if path.exists() && !arguments.force {
        return Err(Error::new(doing(), "it exists; replace it by --force"));
    }
    let options = LiveImageOptions {
        os_version: arguments.version.clone(),
        cpu_architecture: arguments.arch.clone(),
        rootfs_bytes: arguments.rootfs_mib << 20,
        ..LiveImageOptions::default()
    };
    let written = test_iso::write(path, &options).doing(doing)?;
    terminal::print(&format!(
        "{}: {} of {} bytes",
        path.display(),
        options.volume_id(),
        written.length
    ));
    Ok(())
}
