//! Selection of bundles in a catalog, with reasons.

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::cache::CatalogCache;
use catalog::content::PackageModel;
use catalog::filter::{self, ChannelSelection, PackageSelection, Unsatisfied};
use catalog::graph::VersionBounds;
use catalog::version::BundleVersion;
use model::Error;
use model::image_set::{self, IncludeBundle, OperatorSelection};
use model::nearest;

use super::choice::{Choice, PackageChoice, Reason, with_package};
use super::minimum_versions::{self, MinimumVersions};
use super::{dependencies, rule_violations};
use crate::config::bundle_version;
use crate::mistakes::Mistakes;

/// Beyond so many wrong letters, another package was meant.
const WRONG_LETTERS: usize = 3;

/// Bundles of a catalog by a configuration.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    pub(crate) choice: Choice,
    /// Selected and required packages that no version of opm serves.
    pub(crate) refused: Vec<Error>,
}

/// Selects bundles by `operator`; `started` are the minimum versions of channels whose heads alone are configured.
///
/// Errors: NotFound – a package or bundle that the catalog does not have; Invalid – malformed versions, channels or
/// versions that a package does not have, selected packages that no version of opm serves; all mistakes at once.
pub fn choose(
    cache: &Arc<CatalogCache>,
    operator: &OperatorSelection,
    started: &[image_set::IncludePackage],
) -> Result<Choice, Error> {
    let Chosen { choice, refused } = choose_valid(cache, operator, started)?;
    rule_violations::refuse(operator, &refused)?;
    Ok(choice)
}

/// As [`choose`], without the packages that no version of opm serves.
pub(crate) fn choose_valid(
    cache: &Arc<CatalogCache>,
    operator: &OperatorSelection,
    started: &[image_set::IncludePackage],
) -> Result<Chosen, Error> {
    let mut chosen = Chosen::default();
    let names: Vec<String> = if operator.packages.is_empty() {
        let all = cache.groups().into_keys();
        all.filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect()
    } else {
        operator.packages.iter().map(|it| it.name.clone()).collect()
    };
    let mut mistakes = Mistakes::default();
    for name in names {
        if let Some(problems) = cache.report().refused.get(&name) {
            let refused = rule_violations::refused(operator, &name, problems);
            chosen.refused.push(refused);
            continue;
        }
        let wanted = operator.packages.iter().rev().find(|it| it.name == name);
        let started = started.iter().find(|it| it.name == name);
        let part = with_package(cache, &name, |package| {
            part(package, operator, wanted, started)
        })?;
        let part = match part {
            Some(part) => part,
            // Documents of unknown schemas may name a package that is none.
            None if wanted.is_none() => continue,
            None => Err(unknown_package(cache, &operator.catalog, &name)),
        };
        if let Some(part) = mistakes.note(part)? {
            chosen.choice.insert(name, part);
        }
    }
    mistakes.none(&operator.catalog)?;
    if !operator.skip_dependencies {
        dependencies::add(cache, &mut chosen.choice)?;
        let required = rule_violations::refused_required(cache, operator, &chosen.choice)?;
        chosen.refused.extend(required);
    }
    chosen.leave_out_broken(cache, operator)?;
    chosen.refused.extend(rule_violations::unread_of_all(
        cache,
        operator,
        &chosen.refused,
    ));
    Ok(chosen)
}

impl Chosen {
    /// Leaves out the packages of which a selected bundle is broken.
    fn leave_out_broken(
        &mut self,
        cache: &Arc<CatalogCache>,
        operator: &OperatorSelection,
    ) -> Result<(), Error> {
        for (name, problems) in &cache.report().partial {
            let Some(part) = self.choice.get(name) else {
                continue;
            };
            let broken = with_package(cache, name, |package| {
                let broken = filter::broken(package, &part.channels).into_iter();
                broken.map(str::to_owned).collect::<Vec<_>>()
            })?;
            let broken = broken.unwrap_or_default();
            if !broken.is_empty() {
                let refused = rule_violations::refused_bundles(operator, name, &broken, problems);
                self.refused.push(refused);
                self.choice.remove(name);
            }
        }
        Ok(())
    }
}

fn part(
    package: &PackageModel<'_>,
    operator: &OperatorSelection,
    wanted: Option<&image_set::IncludePackage>,
    started: Option<&image_set::IncludePackage>,
) -> Result<PackageChoice, Error> {
    let invalid = |reason: String| Error::invalid(operator.catalog.clone(), reason);
    let mut selection = selection(package, operator.full, wanted, started)?;
    let named = selection.clone();
    let is_asked = |channel: &str| wanted.is_some_and(|it| is_bounded(it, channel));
    let starts = if operator.from_exact {
        minimum_versions::take(package, &mut selection, is_asked).map_err(invalid)?
    } else {
        MinimumVersions::new()
    };
    let chosen = filter::choose(package, &selection, operator.full);
    let mut chosen = chosen.map_err(|e| invalid(unsatisfied(&e)))?;
    minimum_versions::follow(package, &starts, &mut chosen);
    let mut reasons = BTreeMap::new();
    for (channel, bundles) in &chosen.channels {
        let bounds = bounds_of(&named, channel);
        let start = starts.get(channel);
        let head = package
            .channel(channel)
            .map(|it| it.head().name.to_string());
        for bundle in bundles {
            let version = package.bundle(bundle).map(|bundle| &bundle.version);
            let (channel, is_head) = (channel.clone(), head.as_deref() == Some(bundle));
            let is_inside = version.is_some_and(|version| bounds.contain(version))
                || start.is_some_and(|start| start.contains(bundle));
            let asked = is_asked(&channel);
            let reason = match &bounds.min {
                _ if bounds.is_open() && operator.full => Reason::Whole { channel },
                _ if bounds.is_open() || (is_head && !asked) => Reason::Head { channel },
                _ if !is_inside => Reason::Way { channel },
                Some(min) if !asked => Reason::Since {
                    channel,
                    version: min.to_string(),
                },
                _ => Reason::InRange { channel },
            };
            reasons.entry(bundle.clone()).or_insert(reason);
        }
    }
    Ok(PackageChoice {
        channels: chosen.channels,
        default_channel: selection.default_channel,
        left_out: chosen.left_out,
        reasons,
    })
}

/// Whether the image set itself bounds the versions of a channel.
fn is_bounded(package: &image_set::IncludePackage, channel: &str) -> bool {
    let channel = package.channels.iter().find(|it| it.name == channel);
    let own = channel.is_some_and(|channel| channel.versions != IncludeBundle::default());
    own || package.versions != IncludeBundle::default()
}

fn bounds_of(selection: &PackageSelection, channel: &str) -> VersionBounds {
    let own = selection.channels.iter().find(|it| it.name == channel);
    let own = own.map(|channel| &channel.bounds);
    own.filter(|bounds| !bounds.is_open())
        .unwrap_or(&selection.bounds)
        .clone()
}

/// The selection in a package, with named bundles as versions.
fn selection(
    package: &PackageModel<'_>,
    full: bool,
    wanted: Option<&image_set::IncludePackage>,
    started: Option<&image_set::IncludePackage>,
) -> Result<PackageSelection, Error> {
    let nothing = image_set::IncludePackage::default();
    let wanted = wanted.unwrap_or(&nothing);
    let mut selection = PackageSelection {
        name: package.name.to_owned(),
        channels: Vec::new(),
        bounds: bounds(package, &wanted.versions)?,
        default_channel: Some(wanted.default_channel.clone()).filter(|name| !name.is_empty()),
    };
    for channel in &wanted.channels {
        selection.channels.push(ChannelSelection {
            name: channel.name.clone(),
            bounds: bounds(package, &channel.versions)?,
        });
    }
    let started = started.filter(|_| !full && selection.bounds.is_open());
    let Some(started) = started else {
        return Ok(selection);
    };
    if selection.channels.is_empty() {
        let all = package.channels.iter().map(|channel| ChannelSelection {
            name: channel.name.to_owned(),
            bounds: VersionBounds::default(),
        });
        selection.channels = all.collect();
    }
    for channel in &mut selection.channels {
        let start = started.channels.iter().find(|it| it.name == channel.name);
        let Some(start) = start.filter(|_| channel.bounds.is_open()) else {
            continue;
        };
        let start = bounds(package, &start.versions)?;
        // Versions are withdrawn at times. A version above all others is no start.
        if head_of(package, &channel.name).is_none_or(|head| start.contain(head)) {
            channel.bounds = start;
        }
    }
    Ok(selection)
}

fn head_of<'p>(package: &'p PackageModel<'_>, channel: &str) -> Option<&'p BundleVersion> {
    let head = package.channel(channel)?.head();
    package.bundle(&head.name).map(|bundle| &bundle.version)
}

fn bounds(package: &PackageModel<'_>, versions: &IncludeBundle) -> Result<VersionBounds, Error> {
    let version = |field: &str, text: &str| {
        if text.is_empty() {
            return Ok(None);
        }
        bundle_version(text).map(Some).map_err(|e| {
            let reason = format!("{text:?} of package {}: {e}", package.name);
            Error::invalid(field, reason)
        })
    };
    let mut min = version("minVersion", &versions.min_version)?;
    if !versions.min_bundle.is_empty() {
        let bundle = package.bundle(&versions.min_bundle).ok_or_else(|| {
            let id = format!(
                "{} (minBundle of package {})",
                versions.min_bundle, package.name
            );
            Error::not_found("bundle", id)
        })?;
        min = Some(bundle.version.clone());
    }
    Ok(VersionBounds {
        min,
        max: version("maxVersion", &versions.max_version)?,
    })
}

/// Message for an unsatisfiable selection, with the nearest names.
fn unsatisfied(error: &Unsatisfied) -> String {
    let hint = match error {
        Unsatisfied::Channel { channel, known, .. } => {
            hint(channel, known.iter().map(String::as_str))
        }
        _ => String::new(),
    };
    format!("{error}{hint}")
}

/// Half a sentence with the nearest names.
fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let limit = WRONG_LETTERS.min(name.len() / 2);
    nearest(name, known, limit).map_or_else(String::new, |near| format!(", perhaps {near:?}?"))
}

fn unknown_package(cache: &Arc<CatalogCache>, catalog: &str, name: &str) -> Error {
    let groups = cache.groups();
    let known: Vec<&str> = groups.into_keys().filter(|it| !it.is_empty()).collect();
    let hint = hint(name, known.iter().copied());
    let unread = rule_violations::hint(cache.report());
    let id = format!(
        "{name:?} of {catalog} ({} packages{hint}){unread}",
        known.len()
    );
    Error::not_found("package", id)
}
