//! `atoll image`: live images in files, customised as the image service does.

mod make_test_iso;
pub(crate) mod output;
mod push;

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, Subcommand};
use image_service::content::{ContentPieces, Piece};
use image_service::image::{
    BaseImage, InitrdArchives, KargsChange, customised, minimal_iso, pristine,
};
use serde_json::json;
use service::Error;
use sha2::{Digest as _, Sha256};

use self::output::OutputArgs;
use crate::ignition::accepted;
use crate::output_format::FormatArgs;
use crate::terminal;

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ImageCommand {
    /// Show version, areas and kernel arguments
    Show(ShowArgs),
    /// Write a copy with an ignition in it
    Embed(EmbedArgs),
    /// Write a copy without its root file system, which early boot downloads
    Minimal(MinimalArgs),
    /// Write kernel, initrd and root file system, for a network boot
    Extract(ExtractArgs),
    /// Check that the image is whole
    Verify(VerifyArgs),
    /// Push the image to a registry, from where the image service takes it, or into a folder that `atoll mirror` carries
    Push(push::PushArgs),
    /// Write a copy as it was published: no ignition, the default kernel arguments
    Reset(ResetArgs),
    /// Write an image for labs: the layout of a live image around made-up programs, which do not boot
    MakeTestIso(make_test_iso::MakeTestIsoArgs),
}

/// Arguments of `show`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ShowArgs {
    image: PathBuf,
    /// Print the embedded ignition only
    #[arg(long, conflicts_with_all = ["format", "json"])]
    ignition: bool,
    #[command(flatten)]
    format: FormatArgs,
}

/// Arguments of `embed`.
#[derive(Debug, Clone, Args)]
#[group(skip)]
#[command(group(ArgGroup::new("change").required(true).multiple(true)))]
pub(crate) struct EmbedArgs {
    image: PathBuf,
    /// Ignition config; - reads it from standard input. Default: the one that the image has
    #[arg(long, value_name = "FILE", group = "change")]
    ignition: Option<PathBuf>,
    /// Kernel argument to add; may be repeated
    #[arg(long = "karg", value_name = "ARGUMENT", group = "change")]
    kargs: Vec<String>,
    /// Kernel argument to remove; may be repeated
    #[arg(long = "delete-karg", value_name = "ARGUMENT", group = "change")]
    deleted_kargs: Vec<String>,
    /// Kernel argument to replace; may be repeated
    #[arg(long = "replace-karg", value_name = "KEY=OLD=NEW", group = "change")]
    replaced_kargs: Vec<String>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Arguments of `minimal`.
#[derive(Debug, Clone, Args)]
pub(crate) struct MinimalArgs {
    image: PathBuf,
    /// Ignition config; - reads it from standard input
    #[arg(long, value_name = "FILE")]
    ignition: PathBuf,
    /// Kernel argument to add; may be repeated
    #[arg(long = "karg", value_name = "ARGUMENT")]
    kargs: Vec<String>,
    /// URL from which early boot downloads the root file system (see `extract`)
    #[arg(long, value_name = "URL")]
    rootfs_url: String,
    #[command(flatten)]
    output: OutputArgs,
}

/// Arguments of `extract`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ExtractArgs {
    image: PathBuf,
    /// Folder of the files vmlinuz, initrd.img and rootfs.img
    #[arg(
        long = "dir",
        alias = "directory",
        short,
        value_name = "DIR",
        default_value = "."
    )]
    directory: PathBuf,
    /// Replace files
    #[arg(long, short)]
    force: bool,
}

/// Arguments of `verify`.
#[derive(Debug, Clone, Args)]
pub(crate) struct VerifyArgs {
    image: PathBuf,
    /// Expected SHA-256, in hexadecimal
    #[arg(long, value_name = "DIGEST")]
    sha256: Option<String>,
}

/// Arguments of `reset`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ResetArgs {
    image: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs the subcommand.
///
/// Errors: the image cannot be used or customised; a file that cannot be read or written.
pub(crate) fn run(command: &ImageCommand) -> Result<(), Error> {
    match command {
        ImageCommand::Show(arguments) => show(arguments),
        ImageCommand::Embed(arguments) => embed(arguments),
        ImageCommand::Minimal(arguments) => minimal(arguments),
        ImageCommand::Extract(arguments) => extract(arguments),
        ImageCommand::Verify(arguments) => verify(arguments),
        ImageCommand::Push(arguments) => push::push(arguments),
        ImageCommand::MakeTestIso(arguments) => make_test_iso::make(arguments),
        ImageCommand::Reset(ResetArgs { image, output }) => {
            let content = pristine(&open(image)?);
            output.write(&content.map_err(|error| Error::new("resetting the image", error))?)
        }
    }
}

/// Opens a live image.
///
/// Errors: it is none.
pub(crate) fn open(path: &Path) -> Result<BaseImage, Error> {
    BaseImage::open(path).map_err(|error| Error::new("opening the image", error))
}

fn embed(arguments: &EmbedArgs) -> Result<(), Error> {
    let image = open(&arguments.image)?;
    let config = arguments.ignition.as_deref().map(accepted).transpose()?;
    let kargs = KargsChange {
        delete: arguments.deleted_kargs.clone(),
        replace: arguments.replaced_kargs.clone(),
        append: arguments.kargs.clone(),
    };
    let archives = InitrdArchives::default();
    let content = customised(&image, config.as_deref(), archives, &kargs);
    let content = content.map_err(|error| Error::new("customising the image", error))?;
    arguments.output.write(&content)
}

fn show(arguments: &ShowArgs) -> Result<(), Error> {
    let image = open(&arguments.image)?;
    let area = image.embedded();
    let area = area.map_err(|error| Error::new("reading the ignition area", error))?;
    let ignition = ignition::archive::config(&area);
    let ignition = ignition.map_err(|error| Error::new("reading the ignition area", error))?;
    if arguments.ignition {
        let Some(ignition) = ignition else {
            return Err(Error::new("showing the ignition", "the image has none"));
        };
        terminal::print(&String::from_utf8_lossy(&ignition));
        return Ok(());
    }
    let (present, default) = (image.kernel_arguments(), image.default_kernel_arguments());
    if arguments.format.is_json() {
        let shown = json!({
            "volume_id": image.volume_id,
            "length": image.length,
            "rootfs_length": image.rootfs().length(),
            "ignition_area": image.ignition_room(),
            "ignition_length": ignition.as_ref().map(Vec::len),
            "kernel_arguments": present,
            "default_kernel_arguments": default,
        });
        terminal::print(&format!("{shown:#}"));
        return Ok(());
    }
    let ignition = ignition.map_or_else(
        || "none".to_owned(),
        |ignition| format!("{} bytes (see --ignition)", ignition.len()),
    );
    let unknown = "not recorded";
    for (name, value) in [
        ("Volume", image.volume_id.clone()),
        ("Length", format!("{} bytes", image.length)),
        ("Root file system", rootfs(&image)),
        ("Ignition", ignition),
        ("Ignition area", format!("{} bytes", image.ignition_room())),
        ("Kernel arguments", present.unwrap_or(unknown).to_owned()),
        ("by default", default.unwrap_or_else(|| unknown.to_owned())),
    ] {
        terminal::print(&format!("{name:<18}{value}"));
    }
    Ok(())
}

fn rootfs(image: &BaseImage) -> String {
    match image.rootfs().length() {
        0 => "none: a minimal image".to_owned(),
        length => format!("{length} bytes"),
    }
}

fn minimal(arguments: &MinimalArgs) -> Result<(), Error> {
    let url = &arguments.rootfs_url;
    let doing = "making a minimal image";
    check_rootfs_url(url).map_err(|reason| Error::new(doing, reason))?;
    let image = open(&arguments.image)?;
    let config = accepted(&arguments.ignition)?;
    let network = InitrdArchives::default();
    let content = minimal_iso(&image, &config, network, &arguments.kargs, url);
    arguments
        .output
        .write(&content.map_err(|error| Error::new(doing, error))?)
}

/// Errors: the reason why boot loaders do not take the URL of a root file system.
pub(crate) fn check_rootfs_url(url: &str) -> Result<(), String> {
    if !url.contains(['"', '\\', '$', ' ']) {
        return Ok(());
    }
    let reason = "has characters that boot loaders do not take";
    Err(format!("--rootfs-url {url:?} {reason}"))
}

fn extract(arguments: &ExtractArgs) -> Result<(), Error> {
    let image = open(&arguments.image)?;
    for (name, piece) in [
        ("vmlinuz", image.kernel()),
        ("initrd.img", image.initrd()),
        ("rootfs.img", image.rootfs()),
    ] {
        let path = arguments.directory.join(name);
        output::write(&path, arguments.force, &of(piece))?;
        terminal::print(&path.display().to_string());
    }
    Ok(())
}

fn of(piece: Piece) -> ContentPieces {
    let mut content = ContentPieces::new();
    content.push(piece);
    content
}

/// The SHA-256 in hexadecimal.
fn sha256_of(piece: Piece) -> Result<String, Error> {
    let mut hash = Sha256::new();
    let read = of(piece).for_each_chunk(|chunk| {
        hash.update(chunk);
        Ok(())
    });
    read.map_err(|error| Error::new("reading the image", error))?;
    Ok(hex::encode(hash.finalize()))
}

fn verify(arguments: &VerifyArgs) -> Result<(), Error> {
    let doing = "verifying the image";
    let image = open(&arguments.image)?;
    image
        .check_sizes(&arguments.image)
        .map_err(|error| Error::new(doing, error))?;
    let found = sha256_of(image.whole())?;
    if let Some(expected) = &arguments.sha256
        && !expected
            .trim_start_matches("sha256:")
            .eq_ignore_ascii_case(&found)
    {
        let reason = format!("its SHA-256 is {found}, expected {expected}: download it again");
        return Err(Error::new(doing, reason));
    }
    let path = arguments.image.display();
    terminal::print(&format!(
        "{path}: {}, whole, sha256:{found}",
        image.volume_id
    ));
    Ok(())
}
