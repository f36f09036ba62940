//! The content of a bundle: images, archives, boot images, manifests and programs, found in files and registries.

mod boot_images;

use std::fs;
use std::path::{Path, PathBuf};

use ::bundle::assemble::BundleContent;
use ::bundle::{ImageUse, PlannedContent};
use oci_client::Client;
use oci_client::image::{ImageLocation, Layout};
use service::{Error, ResultExt as _};

pub use self::boot_images::BootImageFile;
use crate::pod::quadlet::default_units;
use crate::pod::templates;

/// File of a layout.
const LAYOUT_INDEX: &str = "index.json";
/// Transport of images in layouts.
const OCI: &str = "oci://";
/// Folder of bills of materials.
const BILLS: &str = "sbom/";
/// Folder of discovery agents.
const AGENTS: &str = "agents/";
/// Units: bytes. Largest manifest of a folder.
const DEPLOY_FILE_LIMIT_BYTES: u64 = 4 << 20;
/// Levels of folders.
const DEPLOY_DEPTH: usize = 8;

/// Where the content of a bundle is.
#[derive(Debug, Clone)]
pub struct BundleSources {
    /// Layouts of service images, or folders of layouts.
    pub images: Vec<PathBuf>,
    /// Images for the local registry: references, or `oci://folder[:name]`.
    pub registry_images: Vec<String>,
    /// Folders of archive sets.
    pub archives: Vec<PathBuf>,
    pub boot_images: Vec<BootImageFile>,
    /// Folders of further manifests, whose images have to be inside.
    pub manifests: Vec<PathBuf>,
    /// Folder of bills of materials.
    pub sbom: Option<PathBuf>,
    /// Programs of the discovery agent.
    pub agents: Vec<PathBuf>,
    /// Whether the site has images already that the manifests name.
    pub is_registry_elsewhere: bool,
}

/// Reads where everything is; `client` asks the registries.
///
/// Errors: images that are named and not inside, unreadable sources.
pub async fn collect(sources: &BundleSources, client: &Client) -> Result<BundleContent, Error> {
    let failed = |place: &dyn std::fmt::Display, error: model::Error| {
        Error::new(format!("adding {place}"), error.chain())
    };
    let mut content = BundleContent {
        is_registry_elsewhere: sources.is_registry_elsewhere,
        ..BundleContent::default()
    };
    for folder in &sources.images {
        for layout in layouts(folder)? {
            let added = content.images.add_layout(&layout, ImageUse::Service).await;
            added.map_err(|e| failed(&layout, e))?;
        }
    }
    for image in &sources.registry_images {
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
    for folder in &sources.archives {
        let added = content.add_archives(folder);
        added.map_err(|e| failed(&folder.display(), e))?;
    }
    for (path, text) in templates() {
        content.manifests.push((path.to_owned(), text.to_owned()));
    }
    for (name, text) in default_units()? {
        content.manifests.push((format!("quadlet/{name}"), text));
    }
    for folder in &sources.manifests {
        add_manifests(&mut content, folder)?;
    }
    boot_images::add(&mut content, &sources.boot_images)?;
    for file in &sources.agents {
        content.others.push(PlannedContent::file(
            format!("{AGENTS}{}", name(file)?),
            file,
        ));
    }
    if let Some(folder) = &sources.sbom {
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
