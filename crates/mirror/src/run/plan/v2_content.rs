//! Content of the peer's v2 beside the images of a run: catalogs and the upgrade graph as images, and the files by which it
//! finds images when it reads an archive.
//!
//! Source: oc-mirror v2, the collectors of its mode from disk to registry.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use model::Error;
use model::mirror_metadata::ImageType;
use net::web;
use oci::{Digest, Manifest, Reference, Registry, Tag};
use oci_client::client::BlobSource;
use oci_client::image::ImageLocation;
use url::Url;

use super::prepared::{PreparedCatalog, PreparedRun, V2Content};
use crate::archive::{Extra, LocalBlob, v2_paths};
use crate::build_image::BuiltImage;
use crate::config::{self, Configuration};
use crate::content::{ResolvedImage, SelectedImage, SourceBlob, Why};
use crate::history;
use crate::names;
use crate::operators::{self, Original, filter_tags};
use crate::platform::{GraphData, graph_image_name};
use crate::run::setup::{CatalogForm, RunContext, Sources, V2Archives, blocking};

/// Builds the images of catalogs and of the upgrade graph, and gathers the files. Built layers are below the run's folder of
/// temporary files.
///
/// Errors: Invalid – an original is no catalog image, or a file malformed; Internal – a file cannot be written; those of the
/// sources.
pub(in crate::run) async fn v2_content(
    sources: Sources<'_>,
    context: RunContext<'_>,
    form: V2Archives<'_>,
    prepared: &PreparedRun,
) -> Result<V2Content, Error> {
    let mut content = V2Content::default();
    for (number, catalog) in prepared.catalogs.iter().enumerate() {
        let scratch = prepared.scratch.path().join(format!("catalog-{number}"));
        std::fs::create_dir(&scratch).map_err(|e| Error::internal("making a folder", e))?;
        content.add_catalog(context, catalog, &scratch).await?;
    }
    if let Some(graph) = &prepared.releases.graph {
        content.add_graph(sources, graph, prepared).await?;
    }
    content.add_releases(prepared);
    let time = history::time_of(context.now);
    let configuration = without_logins(form.configuration, sources)?;
    let path = format!("{}{time}", v2_paths::CONFIGURATION);
    content.add_file(path, configuration);
    Ok(content)
}

impl V2Content {
    /// Adds the original of a catalog, and the pruned one under the tags by which the peer finds it.
    async fn add_catalog(
        &mut self,
        context: RunContext<'_>,
        prepared: &PreparedCatalog,
        scratch: &Path,
    ) -> Result<(), Error> {
        let PreparedCatalog {
            catalog,
            original,
            index,
        } = prepared;
        let root = &original.root;
        self.add_image(
            catalog_image(prepared, &catalog.tag),
            original.image(),
            original,
        );
        // Of a whole catalog the peer serves the original. Without these files it looks for that at the source.
        let is_original = operators::is_whole(&catalog.operator);
        let image = if is_original || context.catalogs == CatalogForm::Original {
            original.image()
        } else {
            operators::rebuild(original.base(), index, scratch).await?
        };
        let Some(pruned) = image.manifests.first().map(|it| it.digest.clone()) else {
            return Ok(());
        };
        let (index, folder) = (index.clone(), scratch.to_owned());
        let packages = blocking(move || packages(&index, &folder)).await?;
        let component = names::v2::catalog_component(&catalog.operator);
        let tags = filter_tags(&catalog.operator, root)?;
        for tag in &tags {
            let folder = v2_paths::filtered_catalog(component, root, tag);
            self.add_file(format!("{folder}/digest"), pruned.hex().to_owned());
            for (package, documents) in &packages {
                let path = format!("{folder}/{}/{package}catalog.json", v2_paths::CATALOG_FILES);
                let (name, file) = (path.clone(), documents.clone());
                let extra = blocking(move || Extra::local(name, file)).await?;
                self.files.insert(path, extra);
            }
        }
        let mut image = Some(image);
        for tag in &tags {
            let wanted = catalog_image(prepared, tag);
            match image.take() {
                Some(image) => self.add_image(wanted, image, original),
                None => self.images.images.push(ResolvedImage {
                    wanted,
                    digest: pruned.clone(),
                }),
            }
        }
        Ok(())
    }

    /// Adds the upgrade graph's image, built on its base at the source.
    async fn add_graph(
        &mut self,
        sources: Sources<'_>,
        graph: &GraphData,
        prepared: &PreparedRun,
    ) -> Result<(), Error> {
        let place = ImageLocation::Registry {
            client: sources.client.clone(),
            reference: graph.base.clone(),
        };
        let original = Original::fetch(&place, &place.digest().await?).await?;
        let signatures = prepared.releases.signatures.iter();
        let signatures: Vec<_> = signatures
            .map(|it| (it.file_name(), it.config_map()))
            .collect();
        let image = graph.image(original.base(), &signatures, prepared.scratch.path());
        let image = image.await?;
        let (repository, tag) = graph_image_name()?;
        let wanted = SelectedImage {
            source: graph.base.clone(),
            repository,
            tag,
            kind: ImageType::CincinnatiGraph,
            why: vec![Why::Graph],
            platforms: Vec::new(),
            may_be_missing: false,
        };
        self.add_image(wanted, image, &original);
        Ok(())
    }

    /// Adds the files of releases, and their signatures.
    fn add_releases(&mut self, prepared: &PreparedRun) {
        let releases = &prepared.releases;
        for (path, content) in releases.files.iter() {
            let path = format!("{}{path}", v2_paths::WORKSPACE);
            self.add_file(path, content.clone());
        }
        for signatures in &releases.signatures {
            let images = prepared.content.images.iter().chain(&prepared.mirrored);
            let mut images = images.filter(|image| image.digest == signatures.digest);
            let release = images.find(|image| image.wanted.kind == ImageType::OcpRelease);
            if let (Some(release), Some(first)) = (release, signatures.signatures.first()) {
                let path = v2_paths::signature(&release.wanted.tag, &signatures.digest);
                self.add_file(path, first.clone());
            }
        }
    }

    /// Adds a file. Two entries of a configuration may have the same part of a catalog.
    fn add_file(&mut self, path: String, content: impl Into<Bytes>) {
        let file = Extra::inline(path.clone(), content);
        self.files.insert(path, file);
    }

    /// Adds an image that was built of an original, or the original.
    fn add_image(&mut self, wanted: SelectedImage, image: BuiltImage, original: &Original) {
        let Some(digest) = image.manifests.first().map(|it| it.digest.clone()) else {
            return;
        };
        let mut add = |digest: &Digest, blob: SourceBlob, local: Option<LocalBlob>| {
            self.images.blobs.entry(digest.clone()).or_insert(blob);
            self.local.extend(local.map(|it| (digest.clone(), it)));
        };
        for (digest, blob) in original.remote() {
            add(&digest, blob, None);
        }
        for (blob, file) in original.local() {
            let local = LocalBlob::File(file.to_owned());
            add(&blob.digest, built(blob.size), Some(local));
        }
        for (blob, source) in image.blobs {
            let local = match source {
                BlobSource::Bytes(bytes) => Some(LocalBlob::Bytes(bytes)),
                BlobSource::File(file) => Some(LocalBlob::File(file)),
                _ => None,
            };
            add(&blob.digest, built(blob.size), local);
        }
        let manifests = image.manifests.into_iter();
        let manifests = manifests.map(|it: Manifest| (it.digest.clone(), it));
        self.images.manifests.extend(manifests);
        self.images.images.push(ResolvedImage { wanted, digest });
    }
}

/// A blob of this machine.
fn built(size: u64) -> SourceBlob {
    SourceBlob {
        size,
        sources: BTreeSet::new(),
        file: None,
    }
}

/// The image of a catalog under a tag.
fn catalog_image(prepared: &PreparedCatalog, tag: &Tag) -> SelectedImage {
    let catalog = &prepared.catalog;
    let registry = match &catalog.opened.place {
        ImageLocation::Registry { reference, .. } => reference.registry.clone(),
        ImageLocation::Layout(layout) => Registry::Layout(layout.folder.clone()),
    };
    SelectedImage {
        source: Reference {
            registry,
            repository: catalog.repository.clone(),
            tag: Some(tag.clone()),
            digest: None,
        },
        repository: catalog.repository.clone(),
        tag: tag.clone(),
        kind: ImageType::OperatorCatalog,
        why: vec![Why::Catalog {
            catalog: catalog.name.clone(),
        }],
        platforms: Vec::new(),
        may_be_missing: false,
    }
}

/// Writes the documents of a pruned catalog to files of their packages; the files, by the folder of their package.
///
/// Blocking. Errors: Internal – a file cannot be read or written.
fn packages(index: &Path, scratch: &Path) -> Result<BTreeMap<String, PathBuf>, Error> {
    let failed = |e| Error::internal(format!("reading {}", index.display()), e);
    let content = std::fs::read(index).map_err(failed)?;
    let mut packages: BTreeMap<String, PathBuf> = BTreeMap::new();
    let files = [(index.to_owned(), content)].into_iter();
    let read = catalog::read_files(files, NonZeroUsize::MIN, |document| {
        let folder = match document.group() {
            "" => String::new(),
            package => format!("{package}/"),
        };
        let number = packages.len();
        let path = packages
            .entry(folder)
            .or_insert_with(|| scratch.join(format!("package-{number}.json")));
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        file.write_all(format!("{}\n", document.json).as_bytes())
    });
    read.map_err(|e| Error::internal(format!("writing below {}", scratch.display()), e))?;
    Ok(packages)
}

/// The configuration without the logins in addresses of chart repositories: readers of archives see it.
///
/// Errors: Invalid – a login is written in another way than plainly.
fn without_logins(configuration: &str, sources: Sources<'_>) -> Result<String, Error> {
    let repositories = sources.set.mirror.helm.repositories.iter();
    let urls = repositories.filter_map(|it| Some((&it.url, it.url.parse::<Url>().ok()?)));
    let mut text = configuration.to_owned();
    let mut has_logins = false;
    for (written, url) in urls {
        let shown = web::shown(&url);
        if shown != url.as_str() {
            has_logins = true;
            text = text.replace(written.as_str(), &shown);
        }
    }
    if has_logins && !is_without_logins(&text) {
        let reason = "a url has a login that cannot be left out of the archive: write it without quotes and escapes";
        return Err(Error::invalid("helm.repositories", reason));
    }
    Ok(text)
}

fn is_without_logins(configuration: &str) -> bool {
    let Ok(Configuration::Mirror(set)) = config::parse(configuration.as_bytes()) else {
        return false;
    };
    let mut repositories = set.mirror.helm.repositories.iter();
    repositories.all(|it| {
        it.url
            .parse::<Url>()
            .is_ok_and(|url| web::shown(&url) == url.as_str())
    })
}
