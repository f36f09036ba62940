//! Dependencies of the chosen bundles on other packages.
//!
//! Source: the peer, which takes the newest matching bundle of each package, and its upgrade path to the head of the
//! channel, without bundles that the head skips.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use catalog::cache::CatalogCache;
use catalog::content::{Bundle, PackageModel};
use catalog::graph::keep_named;
use catalog::range::Range;
use model::Error;
use serde::Deserialize;

use super::choice::{Choice, PackageChoice, Reason, with_package};

/// A package dependency. Source: operator-registry, `olm.package.required`.
#[derive(Deserialize)]
struct Required {
    #[serde(rename = "packageName")]
    package: String,
    #[serde(default, rename = "version")]
    range: String,
}

/// Group, version and kind.
type RequiredApi = [String; 3];

/// Dependencies of bundles; each with a bundle that has it.
#[derive(Default)]
struct Dependencies {
    apis: BTreeMap<RequiredApi, String>,
    packages: BTreeMap<String, BTreeMap<String, String>>,
}

/// A bundle in a channel.
type PackagePlace = (String, String, String);

/// Adds dependencies to the choice, transitively.
///
/// Errors: the catalog cannot be read.
pub(super) fn add(cache: &Arc<CatalogCache>, choice: &mut Choice) -> Result<(), Error> {
    let mut seen: BTreeSet<PackagePlace> = BTreeSet::new();
    let mut current: Vec<(String, String)> = Vec::new();
    for (package, part) in &*choice {
        for (channel, bundles) in &part.channels {
            for bundle in bundles {
                seen.insert((package.clone(), channel.clone(), bundle.clone()));
                current.push((package.clone(), bundle.clone()));
            }
        }
    }
    let mut found: BTreeMap<String, Vec<(String, String, Reason)>> = BTreeMap::new();
    while !current.is_empty() {
        let mut needs = Dependencies::of(cache, &current)?;
        current.clear();
        for name in needs.packages_to_ask(cache) {
            let provided = with_package(cache, &name, |package| needs.provided_by(package))?;
            for (channel, bundle, reason) in provided.into_iter().flatten() {
                if seen.insert((name.clone(), channel.clone(), bundle.clone())) {
                    current.push((name.clone(), bundle.clone()));
                    let of_package = found.entry(name.clone()).or_default();
                    of_package.push((channel, bundle, reason));
                }
            }
        }
    }
    for (name, bundles) in found {
        let part = choice.entry(name.clone()).or_default();
        with_package(cache, &name, |package| extend(part, package, bundles))?;
    }
    choice.retain(|_, part| !part.channels.is_empty());
    Ok(())
}

/// The packages that the chosen bundles require by name, each with a bundle that does.
///
/// Errors: the catalog cannot be read.
pub(super) fn required_packages(
    cache: &CatalogCache,
    choice: &Choice,
) -> Result<BTreeMap<String, String>, Error> {
    let chosen = choice.iter().flat_map(|(package, part)| {
        let bundles = part.channels.values().flatten();
        bundles.map(move |bundle| (package.clone(), bundle.clone()))
    });
    let needs = Dependencies::of(cache, &chosen.collect::<Vec<_>>())?;
    let required = needs.packages.into_iter();
    Ok(required
        .filter_map(|(name, ranges)| Some((name, ranges.into_values().next()?)))
        .collect())
}

/// Adds bundles to a part, each with its upgrade path to the head of its channel.
fn extend(
    part: &mut PackageChoice,
    package: &PackageModel<'_>,
    bundles: Vec<(String, String, Reason)>,
) {
    for (name, bundle, reason) in bundles {
        let Some(channel) = package.channel(&name) else {
            continue;
        };
        if channel
            .head()
            .skips
            .iter()
            .any(|skipped| *skipped == bundle)
        {
            continue;
        }
        let mut wanted = part.channels.get(&name).cloned().unwrap_or_default();
        wanted.insert(bundle.clone());
        let kept = keep_named(package, channel, &wanted);
        part.reasons.entry(bundle).or_insert(reason);
        for entry in &kept.entries {
            let way = Reason::Way {
                channel: name.clone(),
            };
            part.reasons.entry(entry.clone()).or_insert(way);
        }
        part.channels.insert(name, kept.entries);
    }
}

impl Dependencies {
    /// Dependencies of these bundles (each with its package).
    fn of(cache: &CatalogCache, bundles: &[(String, String)]) -> Result<Self, Error> {
        let mut by_package: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (package, bundle) in bundles {
            by_package.entry(package).or_default().insert(bundle);
        }
        let mut needs = Self::default();
        for (name, bundles) in by_package {
            with_package(cache, name, |package| {
                for bundle in bundles
                    .into_iter()
                    .filter_map(|bundle| package.bundle(bundle))
                {
                    needs.add(bundle);
                }
            })?;
        }
        Ok(needs)
    }

    fn add(&mut self, bundle: &Bundle<'_>) {
        for api in &bundle.required_apis {
            let api = [&api.group, &api.version, &api.kind].map(ToString::to_string);
            self.apis
                .entry(api)
                .or_insert_with(|| bundle.name.to_owned());
        }
        let packages = bundle
            .dependencies
            .iter()
            .filter(|it| it.kind == "olm.package");
        for required in packages.filter_map(|it| serde_json::from_str::<Required>(&it.value).ok()) {
            let ranges = self.packages.entry(required.package).or_default();
            ranges
                .entry(required.range)
                .or_insert_with(|| bundle.name.to_owned());
        }
    }

    fn packages_to_ask(&self, cache: &Arc<CatalogCache>) -> BTreeSet<String> {
        let providers = self
            .apis
            .keys()
            .flat_map(|[group, version, kind]| cache.packages_providing(group, version, kind));
        let providers = providers.map(str::to_owned);
        providers.chain(self.packages.keys().cloned()).collect()
    }

    /// Required bundles of a package. An API is provided by the first package that has it.
    fn provided_by(&mut self, package: &PackageModel<'_>) -> Vec<(String, String, Reason)> {
        let mut provided = Vec::new();
        self.apis.retain(|api, by| {
            let provides = |bundle: &Bundle<'_>| {
                let own = bundle.provided_apis.iter();
                let mut own = own.map(|own| [&own.group, &own.version, &own.kind]);
                own.any(|own| own.iter().zip(api).all(|(own, wanted)| **own == *wanted))
            };
            let Some((channel, bundle)) = newest(package, provides) else {
                return true;
            };
            let [group, version, kind] = api;
            let what = format!("the API {kind} of {group}/{version}");
            provided.push((
                channel,
                bundle,
                Reason::Needed {
                    by: by.clone(),
                    what,
                },
            ));
            false
        });
        for (range, by) in self.packages.get(package.name).into_iter().flatten() {
            let parsed = range.parse::<Range>().ok();
            let fits = |bundle: &Bundle<'_>| {
                range.is_empty()
                    || parsed
                        .as_ref()
                        .is_some_and(|it| it.contains(&bundle.version))
            };
            if let Some((channel, bundle)) = newest(package, fits) {
                let what = format!("package {} {range}", package.name);
                let what = what.trim_end().to_owned();
                provided.push((
                    channel,
                    bundle,
                    Reason::Needed {
                        by: by.clone(),
                        what,
                    },
                ));
            }
        }
        provided
    }
}

/// The newest bundle that fits, and its channel: the default one rather than others.
fn newest(
    package: &PackageModel<'_>,
    fits: impl Fn(&Bundle<'_>) -> bool,
) -> Option<(String, String)> {
    let places = package.channels.iter().flat_map(|channel| {
        let bundles = channel
            .entries
            .iter()
            .filter_map(|it| package.bundle(&it.name));
        bundles.map(move |bundle| (channel, bundle))
    });
    let rank = |(channel, bundle): &(&catalog::content::ChannelModel<'_>, &Bundle<'_>)| {
        let is_default = channel.name == package.default_channel;
        (
            bundle.version.clone(),
            is_default,
            std::cmp::Reverse(channel.name.to_owned()),
        )
    };
    let best = places.filter(|(_, bundle)| fits(bundle)).max_by_key(rank);
    best.map(|(channel, bundle)| (channel.name.to_owned(), bundle.name.to_owned()))
}
