//! `atoll bundle`: the one file that is carried to a disconnected host.

mod boot_images;

use std::fs;
use std::path::{Path, PathBuf};

use ::bundle::assemble::{BundleContent, BundleHeading};
use ::bundle::{BundleManifest, ImageUse, PlannedContent};
use ::mirror::archive::Signer;
use clap::Args;
use oci_client::Client;
use oci_client::image::{ImageLocation, Layout};
use service::{Error, ResultExt as _};

use self::boot_images::BootImageFile;
use crate::catalog::RegistryAccessArgs;
use crate::pod::{default_units, templates};
use crate::terminal;

/// File of a layout.
const LAYOUT_INDEX: &str = "index.json";
/// Transport of images in layouts.
const OCI: &str = "oci://";
/// Folder of bills of materials.
const BILLS: &str = "sbom/";
/// Folder of discovery agents.
const AGENTS: &str = "agents/";
/// Units: bytes. Between two updates of the progress line.
const PROGRESS_BYTES: u64 = 16 << 20;
/// Units: bytes. Largest manifest of a folder.
const DEPLOY_FILE_LIMIT_BYTES: u64 = 4 << 20;
/// Levels of folders.
const DEPLOY_DEPTH: usize = 8;

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
        let content = collect(arguments, &client).await?;
        let heading = BundleHeading {
            version: env!("CARGO_PKG_VERSION"),
            architecture: std::env::consts::ARCH,
        };
        let mut shown = 0;
        let mut progress = |read: u64| {
            if read >= shown + PROGRESS_BYTES {
                shown = read;
                terminal::progress(&format!("{} read", terminal::mib(read)));
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

async fn collect(arguments: &BundleArgs, client: &Client) -> Result<BundleContent, Error> {
    let failed = |place: &dyn std::fmt::Display, error: model::Error| {
        Error::new(format!("adding {place}"), error.chain())
    };
    let mut content = BundleContent {
        is_registry_elsewhere: arguments.without_host_images,
        ..BundleContent::default()
    };
    for folder in &arguments.images {
        for layout in layouts(folder)? {
            let added = content.images.add_layout(&layout, ImageUse::Service).await;
            added.map_err(|e| failed(&layout, e))?;
        }
    }
    for image in &arguments.image {
        let added = match image.strip_prefix(OCI) {
            Some(layout) => match layout.parse::<Layout>() {
                Ok(layout) => content.images.add_layout(&layout, ImageUse::Registry).await,
                Err(error) => Err(error),
            },
            None => match image.parse() {
                Ok(reference) => {
                    let client = client.clone();
                    let location = ImageLocation::Registry { client, reference };
                    content
                        .images
                        .add(image, location, ImageUse::Registry)
                        .await
                }
                Err(error) => Err(error),
            },
        };
        added.map_err(|e| failed(image, e))?;
    }
    for folder in &arguments.archives {
        let added = content.add_archives(folder);
        added.map_err(|e| failed(&folder.display(), e))?;
    }
    for (path, text) in templates() {
        content.manifests.push((path.to_owned(), text.to_owned()));
    }
    for (name, text) in default_units()? {
        content.manifests.push((format!("quadlet/{name}"), text));
    }
    for folder in &arguments.manifests {
        add_manifests(&mut content, folder)?;
    }
    boot_images::add(&mut content, &arguments.os_image)?;
    for file in &arguments.agent {
        content.others.push(PlannedContent::file(
            format!("{AGENTS}{}", name(file)?),
            file,
        ));
    }
    if let Some(folder) = &arguments.sbom {
        for file in files_of(folder)? {
            content.others.push(PlannedContent::file(
                format!("{BILLS}{}", name(&file)?),
                file,
            ));
        }
    }
    let program = std::env::current_exe().doing("finding this program")?;
    content.add_program(&program);
    Ok(content)
}

/// The layout in a folder, or those of its subfolders.
fn layouts(folder: &Path) -> Result<Vec<Layout>, Error> {
    let layout = |folder: &Path| Layout {
        folder: folder.to_owned(),
        name: None,
    };
    if folder.join(LAYOUT_INDEX).exists() {
        return Ok(vec![layout(folder)]);
    }
    let found: Vec<_> = entries(folder)?
        .iter()
        .filter(|entry| entry.join(LAYOUT_INDEX).exists())
        .map(|entry| layout(entry))
        .collect();
    if found.is_empty() {
        let doing = format!("reading {}", folder.display());
        let remedy = "no image layout, and no folder of layouts: `cargo xtask images --ci` writes them to target/images";
        return Err(Error::new(doing, remedy));
    }
    Ok(found)
}

/// Adds the files below a folder, under its name.
fn add_manifests(content: &mut BundleContent, folder: &Path) -> Result<(), Error> {
    let mut pending = vec![(name(folder)?, folder.to_owned(), 0)];
    while let Some((path, folder, depth)) = pending.pop() {
        for entry in entries(&folder)? {
            let doing = || format!("reading {}", entry.display());
            let path = format!("{path}/{}", name(&entry)?);
            let metadata = fs::metadata(&entry).doing(doing)?;
            if metadata.is_dir() {
                if depth == DEPLOY_DEPTH {
                    return Err(Error::new(doing(), "too many nested folders"));
                }
                pending.push((path, entry, depth + 1));
                continue;
            }
            if metadata.len() > DEPLOY_FILE_LIMIT_BYTES {
                let reason = format!("more than {DEPLOY_FILE_LIMIT_BYTES} bytes");
                return Err(Error::new(doing(), reason));
            }
            let text = fs::read_to_string(&entry).doing(doing)?;
            content.manifests.push((path, text));
        }
    }
    Ok(())
}

fn files_of(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = entries(folder)?;
    files.retain(|file| file.is_file());
    Ok(files)
}

/// Entries of a folder, sorted: the same input gives the same file.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |e| Error::new(format!("reading {}", folder.display()), e);
    let entries = fs::read_dir(folder).map_err(failed)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<_> = paths.collect::<Result<_, _>>().map_err(failed)?;
    paths.sort();
    Ok(paths)
}

fn name(path: &Path) -> Result<String, Error> {
    let name = path.file_name().and_then(|name| name.to_str());
    let wrong = || {
        Error::new(
            format!("adding {}", path.display()),
            "its name is not UTF-8",
        )
    };
    name.map(str::to_owned).ok_or_else(wrong)
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
        terminal::mib(manifest.size),
        manifest.images.len(),
        manifest.members.len(),
        manifest.closure.len(),
        file.display(),
        file.display(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_below_a_folder_are_added_up_to_a_limit() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("kubernetes");
        fs::create_dir_all(top.join("base")).unwrap();
        fs::write(top.join("base/db.yaml"), "image: a/db:1").unwrap();
        let mut content = BundleContent::default();
        add_manifests(&mut content, &top).unwrap();
        let manifest = (
            "kubernetes/base/db.yaml".to_owned(),
            "image: a/db:1".to_owned(),
        );
        assert_eq!(content.manifests, [manifest]);
        // limit: bundle-deploy-file
        let file = fs::File::create(top.join("large.yaml")).unwrap();
        file.set_len(DEPLOY_FILE_LIMIT_BYTES).unwrap();
        add_manifests(&mut content, &top).unwrap();
        file.set_len(DEPLOY_FILE_LIMIT_BYTES + 1).unwrap();
        add_manifests(&mut content, &top).unwrap_err();
    }

    #[test]
    fn a_folder_of_layouts_has_those_of_its_subfolders() {
        let dir = tempfile::tempdir().unwrap();
        let error = layouts(dir.path()).unwrap_err().to_string();
        assert!(error.contains("cargo xtask images"), "{error}");
        for image in ["b", "a"] {
            fs::create_dir(dir.path().join(image)).unwrap();
            fs::write(dir.path().join(image).join(LAYOUT_INDEX), "{}").unwrap();
        }
        fs::write(dir.path().join("a.json"), "{}").unwrap();
        let found = layouts(dir.path()).unwrap();
        let names: Vec<_> = found.iter().map(|it| name(&it.folder).unwrap()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(layouts(&dir.path().join("a")).unwrap().len(), 1);
    }
}
