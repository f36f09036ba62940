//! `atoll bundle`: the one file that is carried to a disconnected host.

use std::fs;
use std::path::{Path, PathBuf};

use ::bundle::BundleManifest;
use ::bundle::assemble::BundleHeading;
use ::mirror::archive::Signer;
use clap::Args;
use model::size::mib;
use service::{Error, ResultExt as _};
use site::bundle_content::{BootImageFile, BundleSources, collect};

use crate::catalog::RegistryAccessArgs;
use crate::terminal;

/// Units: bytes. Between two updates of the progress line.
const PROGRESS_BYTES: u64 = 16 << 20;

/// Arguments of `atoll bundle`.
#[derive(Debug, Clone, Args)]
pub(crate) struct BundleArgs {
    /// Bundle file to write
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// OCI layout of service images, or a folder of layouts; repeatable
    #[arg(long, value_name = "DIR", required = true)]
    images: Vec<PathBuf>,
    /// Image for the local registry: host[:port]/repository[:tag], or oci://folder[:name]; repeatable
    #[arg(long, value_name = "REF")]
    image: Vec<String>,
    /// Folder of an archive set of `atoll mirror`; repeatable
    #[arg(long, value_name = "DIR")]
    archives: Vec<PathBuf>,
    /// Live boot image, which the installation offers; VERSION, as in 4.20, where the image does not name it; repeatable
    #[arg(long, value_name = "[VERSION=]FILE")]
    os_image: Vec<BootImageFile>,
    /// Folder of further manifests, as of Kubernetes, whose images have to be inside; repeatable
    #[arg(long, value_name = "DIR")]
    manifests: Vec<PathBuf>,
    /// Folder of bills of materials
    #[arg(long, value_name = "DIR")]
    sbom: Option<PathBuf>,
    /// Program of the discovery agent; repeatable
    #[arg(long, value_name = "FILE")]
    agent: Vec<PathBuf>,
    /// Allow images of the local registry that are not in the bundle: the site has them already
    #[arg(long)]
    without_host_images: bool,
    /// Private key of `atoll mirror key` to sign with
    #[arg(long, value_name = "FILE")]
    sign: Option<PathBuf>,
    #[command(flatten)]
    access: RegistryAccessArgs,
}

impl BundleArgs {
    fn sources(&self) -> BundleSources {
        BundleSources {
            images: self.images.clone(),
            registry_images: self.image.clone(),
            archives: self.archives.clone(),
            boot_images: self.os_image.clone(),
            manifests: self.manifests.clone(),
            sbom: self.sbom.clone(),
            agents: self.agent.clone(),
            is_registry_elsewhere: self.without_host_images,
        }
    }
}

/// Writes the bundle.
///
/// Errors: images that are named and not inside, unreadable sources, no space.
pub(crate) fn run(arguments: &BundleArgs) -> Result<(), Error> {
    let doing = || format!("making {}", arguments.file.display());
    let failed = |error: model::Error| Error::new(doing(), error.chain());
    let signer = arguments.sign.as_deref().map(signer).transpose()?;
    let client = arguments.access.client()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .doing(doing)?;
    let manifest = runtime.block_on(async {
        let content = collect(&arguments.sources(), &client).await?;
        let heading = BundleHeading {
            version: env!("CARGO_PKG_VERSION"),
            architecture: std::env::consts::ARCH,
        };
        let mut shown = 0;
        let mut progress = |read: u64| {
            if read >= shown + PROGRESS_BYTES {
                shown = read;
                terminal::progress(&format!("{} read", mib(read)));
            }
        };
        let file = &arguments.file;
        let written = content.write(file, heading, signer.as_ref(), &mut progress);
        written.await.map_err(failed)
    })?;
    terminal::clear_progress();
    terminal::print(&summary(&arguments.file, &manifest, signer.is_some()));
    if let Some(text) = elsewhere(&manifest) {
        terminal::print(&text);
    }
    Ok(())
}

fn signer(path: &Path) -> Result<Signer, Error> {
    let doing = || format!("reading {}", path.display());
    let pem = fs::read(path).doing(doing)?;
    Signer::from_pem(&pem).doing(doing)
}

/// The images that the local registry gets otherwise, with the remedy.
pub(crate) fn elsewhere(manifest: &BundleManifest) -> Option<String> {
    if manifest.elsewhere.is_empty() {
        return None;
    }
    let lines = manifest.elsewhere.iter();
    let lines = lines.map(|it| format!("  {}, named by {}\n", it.image, it.named_by.join(" and ")));
    let example = manifest.elsewhere.first()?.image.split_once('/')?.1;
    Some(format!(
        "Not in the bundle, and so to be pushed into the local registry:\n{}To add one to the bundle: \
         `--image REGISTRY/{example}`; with `cargo xtask bundle`, behind `--`.",
        lines.collect::<String>()
    ))
}

fn summary(file: &Path, manifest: &BundleManifest, is_signed: bool) -> String {
    let signed = if is_signed { "signed" } else { "not signed" };
    format!(
        "{}: {}, {} images, {} members, {} references resolved, {signed}.\n\
         On the disconnected host: tar -xf {} atoll && ./atoll install {}",
        file.display(),
        mib(manifest.size),
        manifest.images.len(),
        manifest.members.len(),
        manifest.closure.len(),
        file.display(),
        file.display(),
    )
}
