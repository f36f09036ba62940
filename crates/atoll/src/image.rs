//! `atoll image`: live images in files, customised as the image service does.

mod input;
mod make_test_iso;
pub(crate) mod output;
mod push;

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use image_service::image::{
    BaseImage, InitrdArchives, KargsChange, customised, minimal_iso, pristine,
};
use serde_json::json;
use service::{Error, ResultExt as _};
use url::Url;

pub(crate) use self::input::open;
use self::input::{of, sha256_of};
use self::output::OutputArgs;
use crate::ignition::accepted;
use crate::output_format::FormatArgs;
use crate::terminal;

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ImageCommand {
    /// Show version, areas and kernel arguments
    Show(ShowArgs),
    /// Write a copy with an ignition in it, or with other kernel arguments
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
    /// Live image
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
#[command(group(ArgGroup::new("change").required(true).multiple(true).args(["added", "deleted", "replaced"])))]
pub(crate) struct EmbedArgs {
    /// Live image
    image: PathBuf,
    /// Ignition config; - reads it from standard input. Default: the one that the image has
    #[arg(long, value_name = "FILE", group = "change")]
    ignition: Option<PathBuf>,
    #[command(flatten)]
    kargs: KargsArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Changes of kernel arguments: some are removed, then others added, then others replaced.
#[derive(Debug, Clone, Args)]
#[group(skip)]
struct KargsArgs {
    /// Kernel argument to add at the end; may be repeated
    #[arg(long = "karg", value_name = "ARGUMENT")]
    added: Vec<String>,
    /// Kernel argument to remove, with its value; may be repeated
    #[arg(long = "delete-karg", value_name = "ARGUMENT")]
    deleted: Vec<String>,
    /// Kernel argument to replace; may be repeated
    #[arg(long = "replace-karg", value_name = "KEY=OLD=NEW")]
    replaced: Vec<String>,
}

impl KargsArgs {
    /// The change of an image; arguments that it does not have are warned of.
    fn change(&self, image: &BaseImage) -> KargsChange {
        let change = KargsChange {
            delete: self.deleted.clone(),
            replace: self.replaced.clone(),
            append: self.added.clone(),
        };
        let present = image.kernel_arguments().unwrap_or_default();
        for karg in change.absent(present) {
            terminal::line(&format!(
                "warning: the image has no kernel argument {karg:?}, only: {present}"
            ));
        }
        change
    }
}

/// Arguments of `minimal`.
#[derive(Debug, Clone, Args)]
pub(crate) struct MinimalArgs {
    /// Live image
    image: PathBuf,
    /// Ignition config; - reads it from standard input
    #[arg(long, value_name = "FILE")]
    ignition: PathBuf,
    #[command(flatten)]
    kargs: KargsArgs,
    /// URL from which early boot downloads the root file system (see `extract`)
    #[arg(long, value_name = "URL")]
    rootfs_url: String,
    #[command(flatten)]
    output: OutputArgs,
}

/// Arguments of `extract`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ExtractArgs {
    /// Live image
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
    /// Live image
    image: PathBuf,
    /// Expected SHA-256, in hexadecimal
    #[arg(long, value_name = "DIGEST")]
    sha256: Option<String>,
}

/// Arguments of `reset`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ResetArgs {
    /// Live image
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
            output.write(&content.doing("resetting the image")?)
        }
    }
}

fn embed(arguments: &EmbedArgs) -> Result<(), Error> {
    let image = open(&arguments.image)?;
    let config = arguments.ignition.as_deref().map(accepted).transpose()?;
    let kargs = arguments.kargs.change(&image);
    let archives = InitrdArchives::default();
    let content = customised(&image, config.as_deref(), archives, &kargs);
    let content = content.doing("customising the image")?;
    arguments.output.write(&content)
}

fn show(arguments: &ShowArgs) -> Result<(), Error> {
    let image = open(&arguments.image)?;
    let area = image.embedded();
    let area = area.doing("reading the ignition area")?;
    let ignition = ignition::archive::config(&area);
    let ignition = ignition.doing("reading the ignition area")?;
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
    check_rootfs_url(url).doing(doing)?;
    let image = open(&arguments.image)?;
    let config = accepted(&arguments.ignition)?;
    let network = InitrdArchives::default();
    let kargs = arguments.kargs.change(&image);
    let content = minimal_iso(&image, &config, network, &kargs, url);
    arguments.output.write(&content.doing(doing)?)
}

/// Checks the URL of a root file system, which early boot downloads with curl.
///
/// Source: fedora-coreos-config, coreos-livepxe-rootfs.sh (protocols).
///
/// Errors: the reason why boot loaders or early boot do not take it.
pub(crate) fn check_rootfs_url(text: &str) -> Result<(), String> {
    let example = "write it as http://192.0.2.1:8080/rootfs.img";
    let refusal = |reason: String| Err(format!("--rootfs-url {text:?} {reason}: {example}"));
    if text.contains(['"', '\\', '$', ' ']) || text.contains(char::is_control) {
        return refusal("has characters that boot loaders do not take".to_owned());
    }
    match Url::parse(text) {
        Err(problem) => refusal(format!("is no URL ({problem})")),
        Ok(url) if !["http", "https", "tftp"].contains(&url.scheme()) => refusal(format!(
            "has the scheme {}, and early boot loads by http, https or tftp",
            url.scheme()
        )),
        Ok(url) if url.host_str().is_none_or(str::is_empty) => refusal("names no host".to_owned()),
        Ok(_) => Ok(()),
    }
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

fn verify(arguments: &VerifyArgs) -> Result<(), Error> {
    let doing = "verifying the image";
    let image = open(&arguments.image)?;
    image.check_sizes(&arguments.image).doing(doing)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_file_systems_come_from_servers() {
        for url in [
            "http://h:8080/rootfs?a=b&c",
            "https://[fd00::1]/r",
            "tftp://10.0.0.1/r",
        ] {
            assert_eq!(check_rootfs_url(url), Ok(()), "{url}");
        }
        for (url, expected) in [
            ("", "is no URL"),
            ("h/rootfs.img", "is no URL"),
            ("/data/rootfs.img", "is no URL"),
            ("http://", "is no URL (empty host)"),
            ("http://h:99999/r", "is no URL (invalid port number)"),
            ("tftp:///r", "names no host"),
            ("file:///r", "has the scheme file"),
            ("ftp://h/r", "http, https or tftp"),
            ("h:8080/r", "has the scheme h"),
            ("http://a b/r", "boot loaders do not take"),
            ("http://h/a\"b", "boot loaders do not take"),
            ("http://h/$x", "boot loaders do not take"),
        ] {
            let error = check_rootfs_url(url).unwrap_err();
            assert!(error.contains(expected), "{url}: {error}");
            assert!(
                error.ends_with("http://192.0.2.1:8080/rootfs.img"),
                "{error}"
            );
        }
    }
}
