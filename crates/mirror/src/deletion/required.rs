//! Images that stay in a target because other content needs them.

use std::collections::{BTreeMap, BTreeSet};

use model::Error;
use model::image_set::{Helm, OperatorSelection};
use model::mirror_metadata::MirrorMetadata;
use oci::{Digest, Reference, Repository};
use oci_client::image::ImageLocation;
use uuid::Uuid;

use crate::additional_images::additional_image;
use crate::config::ImageSource;
use crate::content::{SelectedImage, Why};
use crate::helm;
use crate::history::{MetadataStore, repository_in};
use crate::operators::{self, CatalogInfo, OpenedCatalog};
use crate::platform::TargetReleases;
use crate::publish::MirrorTarget;
use crate::section::Section;
use crate::select::{SelectOptions, SelectedCatalog};
use crate::target_view::{catalogs_of, place_of};

/// Most repositories that are read for catalogs, and most tags of one.
const CATALOGS_LIMIT: usize = 50;
/// Words in the names of catalogs, as in redhat-operator-index.
const CATALOG_WORDS: [&str; 3] = ["index", "catalog", "operators"];

/// Images that stay, with the content that needs them.
#[derive(Debug, Default)]
pub(super) struct RequiredImages {
    images: BTreeMap<(Repository, Digest), String>,
    /// Repositories with images to be deleted; others are not queried.
    repositories: BTreeSet<Repository>,
    /// Sets that have an image which is to be deleted.
    sets: BTreeMap<(Repository, Digest), BTreeSet<Uuid>>,
    /// Warnings: content that could not be read.
    pub(super) notes: Vec<String>,
}

/// Images to be deleted.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeletedImages<'a> {
    pub(super) target: &'a MirrorTarget,
    /// Catalogs of the target that the deletion selects from.
    pub(super) catalogs: &'a [SelectedCatalog],
    pub(super) releases: TargetReleases<'a>,
    /// Images of all of them.
    pub(super) wanted: &'a [SelectedImage],
}

impl RequiredImages {
    /// Reads the target's catalogs, releases and metadata.
    pub(super) async fn find(
        meant: DeletedImages<'_>,
        options: SelectOptions<'_>,
    ) -> Result<Self, Error> {
        let target = meant.target;
        let places = meant.wanted.iter().map(|it| target.place(&it.repository));
        let mut kept = Self {
            repositories: places
                .map(|place| place.map(|it| it.repository))
                .collect::<Result<_, _>>()?,
            ..Self::default()
        };
        for catalog in meant.catalogs {
            let is_deleted = |package: &str, bundle: &str| {
                let part = catalog.choice.get(package);
                part.is_some_and(|part| part.channels.values().any(|it| it.contains(bundle)))
            };
            kept.add_catalog(
                &catalog.opened,
                &catalog.operator.catalog,
                &is_deleted,
                target,
            )
            .await?;
        }
        kept.add_releases(meant).await?;
        let deletes_single = meant.is_any(|it| Section::of(it.kind) == Some(Section::Generic));
        for metadata in MetadataStore::all_in_target(target).await? {
            kept.add_images(&metadata, meant)?;
            if deletes_single {
                kept.add_named(&metadata, meant).await?;
                kept.add_charts(&metadata, meant, options).await?;
            }
            for operator in &metadata.past_mirror.mirror.operators {
                for catalog in catalogs_of(operator, target).await? {
                    if !meant.is_chosen_from(&catalog) {
                        kept.add_other(catalog, target, options).await?;
                    }
                }
            }
        }
        kept.add_shared();
        kept.add_unknown_catalogs(meant, options).await?;
        Ok(kept)
    }

    /// Catalogs of the target that no metadata names: those under other tags of the repositories from which the deletion
    /// selects, and those in repositories that are called catalogs.
    async fn add_unknown_catalogs(
        &mut self,
        meant: DeletedImages<'_>,
        options: SelectOptions<'_>,
    ) -> Result<(), Error> {
        let target = meant.target;
        for repository in self.catalog_repositories(meant).await {
            let tags = match target.client.tags(&repository).await {
                Ok(tags) => tags,
                // Of an interrupted push.
                Err(Error::NotFound { .. }) => continue,
                Err(error @ (Error::Forbidden { .. } | Error::Unauthenticated { .. })) => {
                    let cause = error.chain();
                    self.notes.push(format!(
                        "{repository} is not read, and catalogs there may need listed images: {cause}"
                    ));
                    continue;
                }
                Err(error) => return Err(error),
            };
            let (read, others) = tags.split_at(tags.len().min(CATALOGS_LIMIT));
            if !others.is_empty() {
                let count = others.len();
                let note = format!(
                    "{count} other tags of {repository} are not read: images that catalogs under them need may be listed"
                );
                self.notes.push(note);
            }
            for tag in read {
                let other = Reference {
                    tag: Some(tag.clone()),
                    ..repository.clone()
                };
                if meant.is_chosen_from(&other) {
                    continue;
                }
                match self.add_other(other, target, options).await {
                    // Signatures and other images have tags there, too.
                    Err(Error::Invalid { .. }) => {}
                    done => done?,
                }
            }
        }
        Ok(())
    }

    /// Repositories of the target that may have catalogs; none where none is deleted from.
    async fn catalog_repositories(&mut self, meant: DeletedImages<'_>) -> BTreeSet<Reference> {
        let places = meant.catalogs.iter().map(|it| &it.opened.place);
        let mut found: BTreeSet<Reference> = places
            .filter_map(|place| match place {
                ImageLocation::Registry { reference, .. } => Some(reference.without_version()),
                ImageLocation::Layout(_) => None,
            })
            .collect();
        let MirrorTarget {
            client,
            registry,
            namespace,
            ..
        } = meant.target;
        let (Some(host), false) = (registry.host(), found.is_empty()) else {
            return found;
        };
        let names = match client.catalog(host).await {
            Ok(names) => names,
            Err(error) => {
                let cause = error.chain();
                self.notes.push(format!("the repositories of {host} are not listed, and other catalogs there may need listed images: {cause}"));
                return found;
            }
        };
        let is_below = |name: &str| match name.strip_prefix(namespace.as_str()) {
            Some(rest) => namespace.is_empty() || rest.starts_with('/'),
            None => false,
        };
        let is_named = |name: &str| {
            let last = name.rsplit('/').next().unwrap_or_default();
            CATALOG_WORDS.iter().any(|word| last.contains(word))
        };
        let named = names.iter().filter(|name| is_below(name) && is_named(name));
        let named = named.take(CATALOGS_LIMIT).filter_map(|name| {
            Some(Reference {
                registry: registry.clone(),
                repository: name.parse().ok()?,
                tag: None,
                digest: None,
            })
        });
        found.extend(named);
        found
    }

    /// The content that needs an image of the target, if any.
    pub(super) fn why(&self, image: &Reference) -> Option<&str> {
        let key = (image.repository.clone(), image.digest.clone()?);
        self.images.get(&key).map(String::as_str)
    }

    /// A catalog of which nothing is deleted.
    async fn add_other(
        &mut self,
        reference: Reference,
        target: &MirrorTarget,
        options: SelectOptions<'_>,
    ) -> Result<(), Error> {
        let name = reference.to_string();
        let place = ImageLocation::Registry {
            client: target.client.clone(),
            reference,
        };
        match OpenedCatalog::open(place, options.scratch).await {
            Ok(opened) => {
                self.add_catalog(&opened, &name, &|_, _| false, target)
                    .await
            }
            Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn add_catalog(
        &mut self,
        opened: &OpenedCatalog,
        name: &str,
        is_deleted: &dyn Fn(&str, &str) -> bool,
        target: &MirrorTarget,
    ) -> Result<(), Error> {
        let whole = OperatorSelection {
            catalog: name.to_owned(),
            full: true,
            skip_dependencies: true,
            ..OperatorSelection::default()
        };
        // Images of packages that cannot be read may be needed.
        let choice = operators::choose(&opened.cache, &whole, &[])?;
        let of = CatalogInfo {
            catalog: name.to_owned(),
            is_folder: false,
            skip_missing: false,
        };
        let (images, _) = operators::wanted(&opened.cache, &choice, &of)?;
        for image in &images {
            if let Some(why) = other_reason(image, is_deleted) {
                self.add(image, why, target).await?;
            }
        }
        Ok(())
    }

    /// Components of other releases. They are read from release images: the peer's metadata has one of an image's several
    /// names.
    async fn add_releases(&mut self, meant: DeletedImages<'_>) -> Result<(), Error> {
        if !meant.is_any(|it| Section::of(it.kind) == Some(Section::Release)) {
            return Ok(());
        }
        let releases = meant.wanted.iter();
        let releases = releases.filter(|it| matches!(it.why.first(), Some(Why::Release { .. })));
        let deleted: BTreeSet<_> = releases.filter_map(|it| it.source.digest.clone()).collect();
        for image in meant.releases.others(&deleted).await? {
            if let Some(why @ Why::Component { .. }) = image.why.first() {
                self.add(&image, why, meant.target).await?;
            }
        }
        Ok(())
    }

    /// Images in the metadata of a set besides operators, unless they are to be deleted.
    fn add_images(
        &mut self,
        metadata: &MirrorMetadata,
        meant: DeletedImages<'_>,
    ) -> Result<(), Error> {
        for association in &metadata.past_associations {
            let section = Section::of(association.kind);
            if section == Some(Section::Operator) {
                continue;
            }
            let Ok(digest) = association.id.parse::<Digest>() else {
                continue;
            };
            let repository = repository_in(association, meant.target)?;
            let is_meant = meant.is_any(|it| {
                Section::of(it.kind) == section
                    && it.tag.as_str() == association.tag_symlink
                    && meant.place(it).is_some_and(|place| place == repository)
            });
            let place = (repository, digest);
            if is_meant {
                self.sets.entry(place).or_default().insert(metadata.uid);
            } else {
                let why = format!("{} is in set {}", association.name, metadata.uid);
                self.images.entry(place).or_insert(why);
            }
        }
        Ok(())
    }

    /// Additional images of a set, unless they are to be deleted. Images of layouts have associations instead.
    async fn add_named(
        &mut self,
        metadata: &MirrorMetadata,
        meant: DeletedImages<'_>,
    ) -> Result<(), Error> {
        let images = metadata.past_mirror.mirror.additional_images.iter();
        for image in images.filter(|it| !ImageSource::is_layout(&it.name)) {
            let named = additional_image(image, Why::Additional)?;
            let is_same =
                |it: &SelectedImage| (&it.repository, &it.tag) == (&named.repository, &named.tag);
            if meant.is_any(|it| is_same(it) && it.why.contains(&Why::Additional)) {
                if let Some(place) = self.needed(&named, meant.target).await? {
                    self.sets.entry(place).or_default().insert(metadata.uid);
                }
            } else {
                let why = format!("additionalImages of set {} name it", metadata.uid);
                self.add(&named, &why, meant.target).await?;
            }
        }
        Ok(())
    }

    /// Images of a set's charts, unless the charts are to be deleted. Charts are identified by file name, which is the same
    /// in repositories and results.
    async fn add_charts(
        &mut self,
        metadata: &MirrorMetadata,
        meant: DeletedImages<'_>,
        options: SelectOptions<'_>,
    ) -> Result<(), Error> {
        let Helm {
            repositories,
            local,
        } = &metadata.past_mirror.mirror.helm;
        let local = local.iter().map(|chart| Helm {
            local: vec![chart.clone()],
            ..Helm::default()
        });
        let repositories = repositories.iter().map(|repository| Helm {
            repositories: vec![repository.clone()],
            ..Helm::default()
        });
        for helm in local.chain(repositories) {
            let scratch = tempfile::tempdir_in(options.scratch)
                .map_err(|e| Error::internal("making a temporary folder", e))?;
            let web = &options.platform.web;
            let charts = match helm::charts(&helm, web, scratch.path(), false).await {
                Ok(charts) => charts,
                Err(error) => {
                    let uid = metadata.uid;
                    let cause = model::error::chain(&error);
                    self.notes.push(format!("set {uid} has charts that cannot be read here, and may need listed images: {cause}"));
                    continue;
                }
            };
            for image in &charts.wanted {
                if let Some(why) = image.why.first()
                    && !meant.is_any(|it| it.why.contains(why))
                {
                    self.add(image, why, meant.target).await?;
                }
            }
        }
        Ok(())
    }

    /// Adds an image that other content needs.
    async fn add(
        &mut self,
        image: &SelectedImage,
        why: impl std::fmt::Display,
        target: &MirrorTarget,
    ) -> Result<(), Error> {
        if let Some(place) = self.needed(image, target).await? {
            self.images.entry(place).or_insert_with(|| why.to_string());
        }
        Ok(())
    }

    /// The image in the target, in a repository with images to be deleted.
    async fn needed(
        &self,
        image: &SelectedImage,
        target: &MirrorTarget,
    ) -> Result<Option<(Repository, Digest)>, Error> {
        let place = place_of(image, target)?;
        if !self.repositories.contains(&place.repository) {
            return Ok(None);
        }
        let digest = match &place.digest {
            Some(digest) => Some(digest.clone()),
            None => target.client.manifest_digest(&place).await?,
        };
        Ok(digest.map(|digest| (place.repository, digest)))
    }

    /// Images of several sets stay: the deletion is of one of them.
    fn add_shared(&mut self) {
        for (place, sets) in std::mem::take(&mut self.sets) {
            if sets.len() > 1 {
                let sets: Vec<_> = sets.iter().map(Uuid::to_string).collect();
                let why = format!(
                    "the sets {} have it: mirror all but one of them without it first, or delete the metadata oc-mirror:UID of those that are no longer used",
                    sets.join(" and ")
                );
                self.images.entry(place).or_insert(why);
            }
        }
    }
}

impl DeletedImages<'_> {
    fn is_any(&self, is_meant: impl FnMut(&SelectedImage) -> bool) -> bool {
        self.wanted.iter().any(is_meant)
    }

    fn is_chosen_from(&self, catalog: &Reference) -> bool {
        let name = catalog.to_string();
        let mut catalogs = self.catalogs.iter();
        catalogs.any(|it| it.operator.catalog == name)
    }

    /// Repository of an image in the target.
    fn place(&self, image: &SelectedImage) -> Option<Repository> {
        let place = self.target.place(&image.repository).ok()?;
        Some(place.repository)
    }
}

/// Another reason for an image than those bundles.
fn other_reason<'a>(
    wanted: &'a SelectedImage,
    is_deleted: &dyn Fn(&str, &str) -> bool,
) -> Option<&'a Why> {
    wanted.why.iter().find(|why| match why {
        Why::Bundle {
            package, bundle, ..
        }
        | Why::Related {
            package, bundle, ..
        } => !is_deleted(package, bundle),
        _ => true,
    })
}
