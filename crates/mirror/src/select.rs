//! Selection: catalogs, releases and charts of an image set are read, and all become images with their reasons.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use catalog::cache::CatalogCache;
use model::Error;
use model::image_set::{self, MirrorSelection, OperatorSelection};
use model::mirror_metadata::{CatalogStart, PastMirror};
use oci::{Reference, Repository, Tag};
use oci_client::Client;
use oci_client::image::ImageLocation;
use serde_json::Value;

use crate::additional_images::{additional_image, from_configuration, make_unique, platforms};
use crate::config::{ImageSource, expression};
use crate::content::{LeftOut, SelectedImage, Why};
use crate::helm::{self, Fetched};
use crate::mistakes::Mistakes;
use crate::names;
use crate::operators::{
    self, CatalogInfo, Choice, Chosen, OpenedCatalog, rule_violations, template,
};
use crate::platform::{self, ReleaseSources, Releases};
use crate::progress::{Amount, Phase, RunProgress};

/// A catalog of the set.
#[derive(Debug)]
pub struct SelectedCatalog {
    pub operator: OperatorSelection,
    pub opened: OpenedCatalog,
    /// The selected packages, channels and bundles.
    pub choice: Choice,
    /// Its unique name in metadata.
    pub name: String,
    /// Repository of the pruned catalog, below the target's namespace.
    pub repository: Repository,
    pub tag: Tag,
    /// A CatalogSource to take the rest from.
    pub template: Option<Value>,
}

/// Content that an image set selects.
#[derive(Debug, Default)]
pub struct Selected {
    pub catalogs: Vec<SelectedCatalog>,
    /// Releases of the platform, whose images are among the others.
    pub releases: Releases,
    /// Charts of repositories, to be mirrored.
    pub charts: Vec<Fetched>,
    /// Each image once, with all its reasons.
    pub wanted: Vec<SelectedImage>,
    /// Charts that cannot be read, where the run continues on errors.
    pub unread: Vec<Error>,
    /// Parts of catalogs that are selected and cannot be mirrored.
    pub left_out: Vec<LeftOut>,
    /// Warnings for the user: blocked images, bundles that were left out.
    pub notes: Vec<String>,
    /// Packages of the catalogs that break rules, with the consequence.
    pub rule_violations: Vec<String>,
}

/// Options of a selection.
#[derive(Debug, Clone, Copy)]
pub struct SelectOptions<'a> {
    /// Folder for temporary files.
    pub scratch: &'a Path,
    /// Update services, and access to charts.
    pub platform: &'a ReleaseSources,
    /// Whether other charts are mirrored when one cannot be read.
    pub continue_on_error: bool,
    /// Whether images that catalogs name may be missing in their registries, and boot images in releases.
    pub skip_missing: bool,
}

/// Reads the catalogs, releases and charts of the set and collects its images. `last` is the past mirror of the previous
/// run, which gives minimum versions.
///
/// Errors: a catalog, channel or chart that cannot be read, or lacks a selected version; Invalid – malformed references;
/// all mistakes at once.
pub async fn select(
    client: &Client,
    mirror: &MirrorSelection,
    last: Option<&PastMirror>,
    options: SelectOptions<'_>,
    progress: &RunProgress,
) -> Result<Selected, Error> {
    let items = mirror.operators.len() as u64;
    progress.begin(Phase::Selecting, Amount { items, bytes: 0 });
    let mut selected = Selected::default();
    let started = last.map_or(&[][..], |it| &it.operators);
    let mut mistakes = Mistakes::default();
    for operator in &mirror.operators {
        mistakes.note(selected.catalog(client, operator, started, options).await)?;
        progress.add_items(1);
    }
    mistakes.note(selected.releases(client, mirror, last, options).await)?;
    for missing in std::mem::take(&mut selected.releases.boot_images.missing) {
        if options.skip_missing {
            selected.notes.push(missing.to_string());
        } else {
            mistakes.note::<()>(Err(missing))?;
        }
    }
    mistakes.note(selected.additional_images(mirror, options).await)?;
    mistakes.note(selected.leave_out(&mirror.blocked_images))?;
    mistakes.none("the image set")?;
    selected.wanted = merged(std::mem::take(&mut selected.wanted));
    if !mirror.samples.is_empty() {
        let note = "mirror.samples: samples are not supported, they are skipped";
        selected.notes.push(note.to_owned());
    }
    Ok(selected)
}

impl Selected {
    /// Adds images, except `blocked` ones.
    ///
    /// Errors: Invalid – a malformed expression.
    pub(crate) fn add(
        &mut self,
        wanted: Vec<SelectedImage>,
        blocked: &[image_set::ImageSelection],
    ) -> Result<(), Error> {
        self.wanted.extend(wanted);
        self.leave_out(blocked)?;
        self.wanted = merged(std::mem::take(&mut self.wanted));
        Ok(())
    }

    async fn catalog(
        &mut self,
        client: &Client,
        operator: &OperatorSelection,
        started: &[CatalogStart],
        options: SelectOptions<'_>,
    ) -> Result<(), Error> {
        let place = place(client, &operator.catalog)?;
        let is_folder = matches!(place, ImageLocation::Layout(_));
        let template = operator.target_catalog_source_template.as_ref();
        let template = template.map(|file| template::read(file, &operator.catalog));
        let template = template.transpose()?;
        let opened = OpenedCatalog::open(place, options.scratch).await?;
        let report = opened.cache.report();
        let explanations = rule_violations::explanations(&operator.catalog, report);
        self.rule_violations.extend(explanations);
        let name = names::catalog::unique_name(operator);
        let start = started.iter().find(|it| it.catalog == name);
        let start = start.map_or(&[][..], |start| &start.packages);
        let (repository, tag) = names::catalog::rebuilt(operator, &opened.digest)?;
        let of = CatalogInfo {
            catalog: operator.catalog.clone(),
            is_folder,
            skip_missing: options.skip_missing,
        };
        let (cache, owned) = (Arc::clone(&opened.cache), operator.clone());
        let start = start.to_vec();
        let chosen = tokio::task::spawn_blocking(move || chosen(&cache, &owned, &start, &of));
        let (chosen, wanted, unusable) = chosen
            .await
            .map_err(|e| Error::internal("reading a catalog", e))??;
        let Chosen { choice, refused } = chosen;
        if !options.continue_on_error || choice.is_empty() {
            rule_violations::refuse(operator, &refused)?;
        }
        self.left_out
            .extend(refused.into_iter().map(LeftOut::Package));
        self.left_out
            .extend(unusable.into_iter().map(LeftOut::Image));
        let platforms = platforms(&operator.platforms);
        let notes = rule_violations::notes(&operator.catalog, &opened.cache, &choice);
        self.notes.extend(notes);
        self.note_left_out(&operator.catalog, &choice);
        let wanted = wanted.into_iter().map(|wanted| SelectedImage {
            platforms: platforms.clone(),
            ..wanted
        });
        self.wanted.extend(wanted);
        self.catalogs.push(SelectedCatalog {
            operator: operator.clone(),
            opened,
            choice,
            name,
            repository,
            tag,
            template,
        });
        Ok(())
    }

    async fn releases(
        &mut self,
        client: &Client,
        mirror: &MirrorSelection,
        last: Option<&PastMirror>,
        options: SelectOptions<'_>,
    ) -> Result<(), Error> {
        let started = last.map_or(&[][..], |it| &it.platforms);
        let SelectOptions {
            platform, scratch, ..
        } = options;
        let found = platform::releases(client, mirror, started, platform, scratch).await?;
        let (mut releases, wanted) = found;
        self.wanted.extend(wanted);
        self.notes.append(&mut releases.notes);
        if let Some(graph) = &releases.graph {
            self.wanted
                .push(additional_image(&graph.base_image(), Why::GraphBase)?);
        }
        self.releases = releases;
        Ok(())
    }

    /// Images of the configuration and its charts.
    async fn additional_images(
        &mut self,
        mirror: &MirrorSelection,
        options: SelectOptions<'_>,
    ) -> Result<(), Error> {
        let mut wanted = from_configuration(&mirror.additional_images).await?;
        let SelectOptions {
            platform,
            scratch,
            continue_on_error,
            ..
        } = options;
        let charts = helm::charts(&mirror.helm, &platform.web, scratch, continue_on_error).await?;
        wanted.extend(charts.wanted);
        make_unique(&mut wanted);
        self.wanted.extend(wanted);
        self.charts = charts.fetched;
        self.notes.extend(charts.notes);
        self.unread = charts.unread;
        Ok(())
    }

    fn note_left_out(&mut self, catalog: &str, choice: &Choice) {
        for (package, part) in choice {
            for (channel, bundles) in &part.left_out {
                let bundles: Vec<_> = bundles.iter().map(String::as_str).collect();
                let bundles = bundles.join(", ");
                self.notes.push(format!(
                    "{catalog}: channel {channel} of package {package}: left out, since no upgrade leads to the others: {bundles}"
                ));
            }
        }
    }

    fn leave_out(&mut self, blocked: &[image_set::ImageSelection]) -> Result<(), Error> {
        for image in blocked {
            let pattern = expression(&image.name).map_err(|reason| {
                Error::invalid("blockedImages", format!("{:?}: {reason}", image.name))
            })?;
            self.wanted.retain(|wanted| {
                let source = wanted.source.to_string();
                let is_blocked = pattern.is_match(&source);
                if is_blocked {
                    self.notes
                        .push(format!("{source}: blocked by {:?}", image.name));
                }
                !is_blocked
            });
        }
        Ok(())
    }
}

/// The selection in a catalog, its images, and malformed references.
fn chosen(
    cache: &Arc<CatalogCache>,
    operator: &OperatorSelection,
    start: &[image_set::IncludePackage],
    of: &CatalogInfo,
) -> Result<(Chosen, Vec<SelectedImage>, Vec<Error>), Error> {
    let chosen = operators::choose_valid(cache, operator, start)?;
    let (wanted, unusable) = if operator.full && is_bounded(operator) {
        // The pruned catalog has the selected versions, and the images of all versions are mirrored.
        let all = operators::choose_valid(cache, &unbounded(operator), &[])?;
        operators::wanted(cache, &all.choice, of)?
    } else {
        operators::wanted(cache, &chosen.choice, of)?
    };
    Ok((chosen, wanted, unusable))
}

fn place(client: &Client, catalog: &str) -> Result<ImageLocation, Error> {
    Ok(match catalog.parse()? {
        ImageSource::Layout(layout) => ImageLocation::Layout(layout),
        ImageSource::Registry(reference) => ImageLocation::Registry {
            client: client.clone(),
            reference,
        },
    })
}

fn is_bounded(operator: &OperatorSelection) -> bool {
    let nothing = image_set::IncludeBundle::default();
    operator.packages.iter().any(|package| {
        let channels = package.channels.iter();
        package.versions != nothing || channels.clone().any(|it| it.versions != nothing)
    })
}

/// The same packages and channels, with all their versions.
fn unbounded(operator: &OperatorSelection) -> OperatorSelection {
    let mut operator = operator.clone();
    for package in &mut operator.packages {
        package.versions = image_set::IncludeBundle::default();
        for channel in &mut package.channels {
            channel.versions = image_set::IncludeBundle::default();
        }
    }
    operator
}

/// Each image once, where it was named first, with the reasons of all.
fn merged(wanted: Vec<SelectedImage>) -> Vec<SelectedImage> {
    let mut places: BTreeMap<(Reference, Repository, Tag, &str), usize> = BTreeMap::new();
    let mut merged: Vec<SelectedImage> = Vec::new();
    for it in wanted {
        let (source, repository, tag) = (&it.source, &it.repository, &it.tag);
        // Images that a catalog names by tag lose it, and those of the configuration keep it.
        let key = (
            source.clone(),
            repository.clone(),
            tag.clone(),
            it.kind.as_str(),
        );
        if let Some(index) = places.get(&key) {
            merged[*index].join(it);
        } else {
            places.insert(key, merged.len());
            merged.push(it);
        }
    }
    merged
}
