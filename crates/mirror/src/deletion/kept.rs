//! What stays in a target because something there needs it.

use std::collections::{BTreeMap, BTreeSet};

use model::Error;
use model::image_set::{Helm, OperatorSelection};
use model::mirror_metadata::MirrorMetadata;
use oci::{Digest, Reference, Repository};
use oci_client::image::ImageLocation;

use super::other_reason;
use crate::additional_images::additional_image;
use crate::config::ImageSource;
use crate::content::{Wanted, Why};
use crate::helm;
use crate::history::{Store, repository_in};
use crate::operators::{self, Of, Opened, breaches};
use crate::platform::Present;
use crate::publish::Target;
use crate::section::Section;
use crate::select::{SelectOptions, SelectedCatalog};
use crate::target_view::{catalogs_of, place_of};

/// What stays, with who needs it.
#[derive(Debug, Default)]
pub(super) struct Kept {
    images: BTreeMap<(Repository, Digest), String>,
    /// Where something is to be deleted; what is elsewhere is not looked up.
    repositories: BTreeSet<Repository>,
    /// What could not be looked into.
    pub(super) notes: Vec<String>,
}

/// What is to be deleted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meant<'a> {
    pub(super) target: &'a Target,
    /// Those of the target that were chosen from.
    pub(super) catalogs: &'a [SelectedCatalog],
    pub(super) releases: Present<'a>,
    /// What all of them brought.
    pub(super) wanted: &'a [Wanted],
}

impl Kept {
    /// Looks into the target's catalogs, releases and metadata.
    pub(super) async fn find(meant: Meant<'_>, options: SelectOptions<'_>) -> Result<Self, Error> {
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
        for metadata in Store::all_in_target(target).await? {
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
        Ok(kept)
    }

    /// Who needs an image of the target; nothing when nobody does.
    pub(super) fn why(&self, image: &Reference) -> Option<&str> {
        let key = (image.repository.clone(), image.digest.clone()?);
        self.images.get(&key).map(String::as_str)
    }

    /// A catalog of which nothing is deleted.
    async fn add_other(
        &mut self,
        reference: Reference,
        target: &Target,
        options: SelectOptions<'_>,
    ) -> Result<(), Error> {
        let name = reference.to_string();
        let place = ImageLocation::Registry {
            client: target.client.clone(),
            reference,
        };
        match Opened::open(place, options.scratch).await {
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
        opened: &Opened,
        name: &str,
        is_deleted: &dyn Fn(&str, &str) -> bool,
        target: &Target,
    ) -> Result<(), Error> {
        let whole = OperatorSelection {
            catalog: name.to_owned(),
            full: true,
            skip_dependencies: true,
            ..OperatorSelection::default()
        };
        // Images of packages that cannot be read may be needed.
        breaches::refuse_any(&opened.judged, name)?;
        let choice = operators::choose(&opened.cache, &whole, &[])?;
        let of = Of {
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

    /// What other releases consist of. Metadata does not tell: with the peer's, an image has one name of several.
    async fn add_releases(&mut self, meant: Meant<'_>) -> Result<(), Error> {
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

    /// What a set remembers besides operators, unless it is to be deleted itself.
    fn add_images(&mut self, metadata: &MirrorMetadata, meant: Meant<'_>) -> Result<(), Error> {
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
            if !is_meant {
                let why = format!("{} is in set {}", association.name, metadata.uid);
                self.images.entry((repository, digest)).or_insert(why);
            }
        }
        Ok(())
    }

    /// The images that a set names, unless they are named here, too. What came from folders is not named: it is remembered.
    async fn add_named(
        &mut self,
        metadata: &MirrorMetadata,
        meant: Meant<'_>,
    ) -> Result<(), Error> {
        let images = metadata.past_mirror.mirror.additional_images.iter();
        for image in images.filter(|it| !ImageSource::is_layout(&it.name)) {
            let named = additional_image(image, Why::Additional)?;
            let is_same =
                |it: &Wanted| (&it.repository, &it.tag) == (&named.repository, &named.tag);
            if !meant.is_any(|it| is_same(it) && it.why.contains(&Why::Additional)) {
                let why = format!("additionalImages of set {} name it", metadata.uid);
                self.add(&named, &why, meant.target).await?;
            }
        }
        Ok(())
    }

    /// The images of a set's charts, unless these are meant. They are told apart by the names of their files, which are the
    /// same in repositories and in the results of runs.
    async fn add_charts(
        &mut self,
        metadata: &MirrorMetadata,
        meant: Meant<'_>,
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
                    self.notes.push(format!("set {uid} has charts that cannot be read here, and may need what is listed: {cause}"));
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

    /// An image that somebody needs.
    async fn add(
        &mut self,
        image: &Wanted,
        why: impl std::fmt::Display,
        target: &Target,
    ) -> Result<(), Error> {
        let place = place_of(image, target)?;
        if !self.repositories.contains(&place.repository) {
            return Ok(());
        }
        let digest = match &place.digest {
            Some(digest) => Some(digest.clone()),
            None => target.client.manifest_digest(&place).await?,
        };
        if let Some(digest) = digest {
            let place = (place.repository, digest);
            self.images.entry(place).or_insert_with(|| why.to_string());
        }
        Ok(())
    }
}

impl Meant<'_> {
    fn is_any(&self, is_meant: impl FnMut(&Wanted) -> bool) -> bool {
        self.wanted.iter().any(is_meant)
    }

    fn is_chosen_from(&self, catalog: &Reference) -> bool {
        let name = catalog.to_string();
        let mut catalogs = self.catalogs.iter();
        catalogs.any(|it| it.operator.catalog == name)
    }

    /// Where an image lies in the target.
    fn place(&self, image: &Wanted) -> Option<Repository> {
        let place = self.target.place(&image.repository).ok()?;
        Some(place.repository)
    }
}
