//! A catalog with all its images, from where it is to where it goes.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use model::Error;
use model::image_set::{MirrorSelection, OperatorSelection};
use model::mirror_metadata::ImageType;
use oci::{
    Digest, Manifest, Reference, Registry, Repository, Target as Name, Transport, media_type,
};
use oci_client::Client;
use oci_client::image::Layout;

use super::layout::layout;
use super::tree::{BlobFiles, RepositoryTree, SCHEME};
use crate::blobs::{BlobProvider, Registries};
use crate::config::ImageSource;
use crate::content::{ImageContent, LeftOut, ResolvedImage, SelectedImage, SourceBlob, Why};
use crate::names;
use crate::platform::ReleaseSources;
use crate::publish::{MirrorTarget, publish};
use crate::resolve::resolve;
use crate::results;
use crate::run::{RunContext, RunOutcome};
use crate::select::{SelectOptions, Selected, select};

/// Levels of nested indexes.
const INDEX_DEPTH: usize = 4;
/// Hexadecimal digits in the tag of a catalog without one.
const DIGITS: usize = 6;

/// Source or destination of a catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Copy {
    /// In a registry.
    Registry(Reference),
    /// In a folder.
    Folder(RepositoryTree),
}

/// A catalog and its images.
#[derive(Debug)]
pub struct LoadedCatalog {
    pub content: ImageContent,
    /// Images that are not mirrored, with the cause.
    pub failed: Vec<(SelectedImage, Error)>,
    /// Parts of the catalog that cannot be mirrored.
    pub left_out: Vec<LeftOut>,
    /// Warnings for the user.
    pub notes: Vec<String>,
    catalog: SelectedImage,
    /// Blobs in local files; the others are in registries.
    files: Option<BlobFiles>,
}

impl FromStr for Copy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text.starts_with(SCHEME) {
            return text.parse().map(Self::Folder);
        }
        let reference = match Transport::split(text) {
            (Some(Transport::Docker), reference) => reference,
            _ => text,
        };
        reference.parse().map(Self::Registry)
    }
}

impl Copy {
    /// Reads the catalog, and resolves its images. Folders are below `dir`.
    ///
    /// Errors: a catalog that cannot be read, or an image of it, unless the run continues on errors.
    pub async fn load(
        &self,
        client: &Client,
        platform: &ReleaseSources,
        context: RunContext<'_>,
        dir: &Path,
    ) -> Result<LoadedCatalog, Error> {
        let scratch = tempfile::tempdir_in(context.workspace)
            .map_err(|e| Error::internal("making a temporary folder", e))?;
        let loaded = match self {
            Self::Registry(index) => {
                from_registry(client, platform, context, index, scratch.path()).await
            }
            Self::Folder(tree) => {
                from_folder(client, platform, context, tree, dir, scratch.path()).await
            }
        }?;
        match loaded.failed.first() {
            Some((wanted, error)) if !context.limits.continue_on_error => {
                let others = loaded.failed.len() - 1;
                let reason = format!("{}, and {others} others", model::error::chain(error));
                Err(Error::invalid(wanted.source.to_string(), reason))
            }
            _ => Ok(loaded),
        }
    }
}

async fn from_registry(
    client: &Client,
    platform: &ReleaseSources,
    context: RunContext<'_>,
    index: &Reference,
    scratch: &Path,
) -> Result<LoadedCatalog, Error> {
    let catalog = catalog(index.clone(), index.repository.clone());
    let selected = images(
        client,
        platform,
        context,
        &index.to_string(),
        &index.repository,
        scratch,
    )
    .await?;
    let Selected {
        mut wanted,
        left_out,
        notes,
        ..
    } = selected;
    wanted.push(catalog.clone());
    let progress = context.progress;
    let mut resolved = resolve(client, wanted, context.limits.parallel, progress).await;
    for image in &mut resolved.content.images {
        rename(&mut image.wanted);
    }
    Ok(LoadedCatalog {
        content: resolved.content,
        failed: resolved.failed,
        left_out,
        notes,
        catalog,
        files: None,
    })
}

async fn from_folder(
    client: &Client,
    platform: &ReleaseSources,
    context: RunContext<'_>,
    tree: &RepositoryTree,
    dir: &Path,
    scratch: &Path,
) -> Result<LoadedCatalog, Error> {
    let source = Reference {
        registry: Registry::Host(String::new()),
        repository: tree.name.clone(),
        tag: Some(tree.tag.clone()),
        digest: None,
    };
    let path = scratch.join("catalog");
    layout(dir, &source, &path)?;
    let catalog_source = ImageSource::Layout(Layout {
        folder: path,
        name: None,
    });
    let selected = images(
        client,
        platform,
        context,
        &catalog_source.to_string(),
        &tree.name,
        scratch,
    )
    .await?;
    let Selected {
        wanted,
        left_out,
        notes,
        ..
    } = selected;
    let mut loaded = LoadedCatalog {
        content: ImageContent::default(),
        failed: Vec::new(),
        left_out,
        notes,
        catalog: catalog(source.clone(), tree.name.clone()),
        files: None,
    };
    let mut files = BlobFiles::default();
    let mut all: Vec<_> = wanted.into_iter().map(|wanted| (wanted, false)).collect();
    all.push((loaded.catalog.clone(), true));
    for (mut wanted, is_catalog) in all {
        rename(&mut wanted);
        let repository = tree.repository((!is_catalog).then_some(&wanted.repository))?;
        let here = Reference {
            repository,
            ..wanted.source.clone()
        };
        match manifests(dir, &here) {
            Ok(manifests) => loaded.content.add_files(wanted, manifests, |digest| {
                let path = RepositoryTree::blob(dir, &here.repository, digest);
                files.0.entry(digest.clone()).or_insert(path);
            }),
            Err(error) => loaded.failed.push((wanted, error)),
        }
    }
    loaded.files = Some(files);
    Ok(loaded)
}

impl LoadedCatalog {
    /// Writes all into the folder `below` in `dir`; the mapping, by sources.
    ///
    /// Errors: Invalid – the source is a folder itself; those of the sources and the disk.
    pub async fn to_folder(
        &self,
        client: &Client,
        context: RunContext<'_>,
        dir: &Path,
        below: &Repository,
    ) -> Result<String, Error> {
        if self.files.is_some() {
            let reason = "it is in a folder already: copy the folder";
            return Err(Error::invalid("target", reason));
        }
        let tree = RepositoryTree {
            name: format!("{below}/{}", self.catalog.repository).parse()?,
            tag: self.catalog.tag.clone(),
        };
        let place = |image: &ResolvedImage| {
            let is_catalog = image.wanted.kind == ImageType::OperatorCatalog;
            tree.repository((!is_catalog).then_some(&image.wanted.repository))
        };
        let parallel = context.limits.parallel;
        RepositoryTree::write(
            dir,
            &self.content,
            place,
            client,
            parallel,
            context.progress,
        )
        .await?;
        let lines = self.content.images.iter().map(|image| {
            let (repository, tag) = (place(image)?, &image.wanted.tag);
            Ok(format!("{}={SCHEME}{repository}:{tag}\n", image.pinned()))
        });
        lines.collect()
    }

    /// Sends all to the target, where names have one component below its namespace.
    ///
    /// Errors: an image that cannot be sent, unless the run continues on errors; Invalid – a name does not fit.
    pub async fn to_registry(
        &self,
        client: &Client,
        platform: &ReleaseSources,
        context: RunContext<'_>,
        target: &MirrorTarget,
    ) -> Result<RunOutcome, Error> {
        let own = target
            .namespace
            .split('/')
            .filter(|it| !it.is_empty())
            .count();
        let target = MirrorTarget {
            max_components: own + 1,
            ..target.clone()
        };
        let (content, limits) = (&self.content, context.limits);
        let registries = Registries {
            client,
            web: &platform.web,
            blobs: &content.blobs,
        };
        let blobs: &dyn BlobProvider = match &self.files {
            Some(files) => files,
            None => &registries,
        };
        let progress = context.progress;
        let sent = publish(content, blobs, &target, BTreeMap::new(), limits, progress).await;
        let mut outcome =
            RunOutcome::of(content, sent, &target, &MirrorSelection::default(), limits)?;
        let SelectedImage {
            source,
            repository,
            tag,
            ..
        } = &self.catalog;
        outcome.results.catalogs.push(results::MirroredCatalog {
            name: source.to_string().trim_start_matches('/').to_owned(),
            repository: repository.clone(),
            destination: Reference {
                tag: Some(tag.clone()),
                ..target.place(repository)?
            },
            template: None,
        });
        Ok(outcome)
    }
}

/// The images of all bundles of a catalog.
async fn images(
    client: &Client,
    platform: &ReleaseSources,
    context: RunContext<'_>,
    catalog: &str,
    name: &Repository,
    scratch: &Path,
) -> Result<Selected, Error> {
    let mirror = MirrorSelection {
        operators: vec![OperatorSelection {
            catalog: catalog.to_owned(),
            // A folder need not be called like a repository.
            target_catalog: name.to_string(),
            full: true,
            skip_dependencies: true,
            ..OperatorSelection::default()
        }],
        ..MirrorSelection::default()
    };
    let options = SelectOptions {
        scratch,
        platform,
        continue_on_error: context.limits.continue_on_error,
        skip_missing: false,
    };
    select(client, &mirror, None, options, context.progress).await
}

fn catalog(source: Reference, repository: Repository) -> SelectedImage {
    let tag = match source.target() {
        Name::Tag(tag) => tag,
        Name::Digest(digest) => names::tag_of_digest(&digest, DIGITS),
    };
    SelectedImage {
        why: vec![Why::Catalog {
            catalog: source.to_string(),
        }],
        source,
        repository,
        tag,
        kind: ImageType::OperatorCatalog,
        platforms: Vec::new(),
        may_be_missing: false,
    }
}

/// Keeps the tags of images: the catalog is copied unchanged.
fn rename(wanted: &mut SelectedImage) {
    if wanted.kind == ImageType::OperatorCatalog {
        return;
    }
    wanted.tag = match wanted.source.target() {
        Name::Tag(tag) => tag,
        Name::Digest(_) => names::tag_of_pinned(&wanted.source),
    };
}

/// The manifest of an image in a folder, and after it those of its parts.
fn manifests(dir: &Path, image: &Reference) -> Result<Vec<Manifest>, Error> {
    let mut found = vec![RepositoryTree::manifest(dir, image)?];
    let (mut next, mut end) = (0, 1);
    for _ in 0..INDEX_DEPTH {
        for index in next..end {
            let parts: Vec<Digest> = found[index].required_manifests().cloned().collect();
            for part in parts {
                found.push(RepositoryTree::manifest(dir, &image.with_digest(part))?);
            }
        }
        (next, end) = (end, found.len());
    }
    Ok(found)
}

impl ImageContent {
    /// Adds an image with local content, and its manifests, its own first.
    fn add_files(
        &mut self,
        wanted: SelectedImage,
        manifests: Vec<Manifest>,
        mut file: impl FnMut(&Digest),
    ) {
        let Some(digest) = manifests.first().map(|it| it.digest.clone()) else {
            return;
        };
        for manifest in manifests {
            let blobs = manifest.blobs();
            for blob in blobs.filter(|it| !media_type::is_nondistributable(&it.media_type)) {
                file(&blob.digest);
                self.blobs
                    .entry(blob.digest.clone())
                    .or_insert_with(|| SourceBlob {
                        size: blob.size,
                        sources: std::collections::BTreeSet::new(),
                        file: None,
                    });
            }
            self.manifests.insert(manifest.digest.clone(), manifest);
        }
        self.images.push(ResolvedImage { wanted, digest });
    }
}
