//! What stays in a target because something there needs it.

use std::collections::BTreeMap;

use model::Error;
use model::image_set::Operator;
use model::mirror_metadata::{ImageType, Metadata};
use oci::image::Place;
use oci::{Digest, Reference, Repository};

use super::other_reason;
use crate::content::Wanted;
use crate::gather::{Catalog, Options};
use crate::history::{Store, repository_in};
use crate::inside::catalog_of;
use crate::names;
use crate::operators::{self, Of, Opened};
use crate::publish::Target;
use crate::section::Section;

/// What stays, by its place, with who needs it.
#[derive(Debug, Default)]
pub(super) struct Kept(BTreeMap<(Repository, Digest), String>);

impl Kept {
    /// Looks into the target's catalogs and metadata. `catalogs` are those that `named` chose from, `wanted` is what they chose.
    pub(super) async fn find(
        target: &Target,
        named: &[Operator],
        catalogs: &[Catalog],
        wanted: &[Wanted],
        options: Options<'_>,
    ) -> Result<Self, Error> {
        let mut kept = Self::default();
        for catalog in catalogs {
            let is_deleted = |package: &str, bundle: &str| {
                let part = catalog.choice.get(package);
                part.is_some_and(|part| part.channels.values().any(|it| it.contains(bundle)))
            };
            kept.add_catalog(
                &catalog.opened,
                &catalog.operator.catalog,
                &is_deleted,
                target,
            )?;
        }
        for metadata in Store::all_in_target(target).await? {
            kept.add_images(&metadata, wanted, target)?;
            let others = metadata.past_mirror.mirror.operators.iter();
            for operator in others.filter(|it| !is_named(it, named)) {
                kept.add_other(operator, target, options).await?;
            }
        }
        Ok(kept)
    }

    /// Who needs an image of the target; nothing when nobody does.
    pub(super) fn why(&self, image: &Reference) -> Option<&str> {
        let key = (image.repository.clone(), image.digest.clone()?);
        self.0.get(&key).map(String::as_str)
    }

    /// A catalog of which nothing is deleted.
    async fn add_other(
        &mut self,
        operator: &Operator,
        target: &Target,
        options: Options<'_>,
    ) -> Result<(), Error> {
        let Ok(reference) = catalog_of(operator, target) else {
            return Ok(());
        };
        let name = reference.to_string();
        let place = Place::Registry {
            client: target.client.clone(),
            reference,
        };
        match Opened::open(place, options.scratch, options.now).await {
            Ok(opened) => self.add_catalog(&opened, &name, &|_, _| false, target),
            Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn add_catalog(
        &mut self,
        opened: &Opened,
        name: &str,
        is_deleted: &dyn Fn(&str, &str) -> bool,
        target: &Target,
    ) -> Result<(), Error> {
        let whole = Operator {
            catalog: name.to_owned(),
            full: true,
            skip_dependencies: true,
            ..Operator::default()
        };
        let choice = operators::choose(&opened.cache, &whole, &[])?;
        let of = Of {
            catalog: name.to_owned(),
            is_folder: false,
            skip_missing: false,
        };
        let (images, _) = operators::wanted(&opened.cache, &choice, &of)?;
        for image in &images {
            if let Some(why) = other_reason(image, is_deleted) {
                self.add(&image.repository, image.source.digest.as_ref(), why, target)?;
            }
        }
        Ok(())
    }

    /// What a set remembers besides operators, unless it is named itself.
    fn add_images(
        &mut self,
        metadata: &Metadata,
        wanted: &[Wanted],
        target: &Target,
    ) -> Result<(), Error> {
        for association in &metadata.past_associations {
            if Section::of(association.kind) == Some(Section::Operator) {
                continue;
            }
            let Ok(digest) = association.id.parse::<Digest>() else {
                continue;
            };
            let repository = repository_in(association, target)?;
            let is_same = |it: &&Wanted| {
                it.kind == ImageType::Generic
                    && it.tag.as_str() == association.tag_symlink
                    && target
                        .place(&it.repository)
                        .is_ok_and(|place| place.repository == repository)
            };
            if !wanted.iter().any(|it| is_same(&it)) {
                let why = format!("{} is in set {}", association.name, metadata.uid);
                self.0.entry((repository, digest)).or_insert(why);
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        repository: &Repository,
        digest: Option<&Digest>,
        why: impl std::fmt::Display,
        target: &Target,
    ) -> Result<(), Error> {
        if let Some(digest) = digest {
            let place = (target.place(repository)?.repository, digest.clone());
            self.0.entry(place).or_insert_with(|| why.to_string());
        }
        Ok(())
    }
}

fn is_named(operator: &Operator, named: &[Operator]) -> bool {
    let name = names::catalog::unique_name(operator);
    named
        .iter()
        .any(|it| names::catalog::unique_name(it) == name)
}
