//! Assembles a package from its documents.

use std::borrow::Cow;
use std::collections::HashSet;

use super::typed::{Documents, TypedDocument};
use super::{Bundle, ChannelModel, PackageModel};
use crate::check::{
    PackageProblems, ProblemReport, Targets, check_channel, check_versions, label_flaw,
    valid_deprecations,
};
use crate::schema::{BUNDLE, CHANNEL, ChannelDocument, DeprecationEntry, PackageDocument};
use crate::{CatalogProblems, Document, DocumentOrigin, Rule};

impl<'a> PackageModel<'a> {
    /// Assembles a package from its documents in walk order. `None` when all of them are custom. Rules that older
    /// versions of opm lack may be broken: those versions serve the package.
    ///
    /// Errors: broken rules of all versions of opm.
    /// Source: operator-framework/operator-registry, `alpha/declcfg/declcfg_to_model.go`, `alpha/model/model.go`.
    pub fn assemble(documents: &'a [Document]) -> Result<Option<Self>, CatalogProblems> {
        let (package, problems) = Self::validate(documents);
        if problems.errors.0.is_empty() {
            Ok(package)
        } else {
            Err(problems.errors)
        }
    }

    /// As [`PackageModel::assemble`], without the bundles that no version of opm serves; their channel entries stay.
    ///
    /// Errors: broken rules that concern more than single bundles.
    pub fn assemble_partly(documents: &'a [Document]) -> Result<Option<Self>, CatalogProblems> {
        let (package, problems) = Self::validate(documents);
        if problems.is_refused {
            Err(problems.errors)
        } else {
            Ok(package)
        }
    }

    /// Assembles a package as far as possible, with all problems.
    pub fn validate(documents: &'a [Document]) -> (Option<Self>, PackageProblems) {
        let name = documents.first().map_or("", Document::group);
        let mut report = ProblemReport::new(name);
        let package = assemble(name, Documents::read(documents, &mut report), &mut report);
        let problems = report.finish();
        let package = package.map(|mut package| {
            let is_sound = |bundle: &Bundle<'_>| !problems.broken.contains(bundle.name);
            package.bundles.retain(is_sound);
            package
        });
        (package, problems)
    }
}

fn assemble<'a>(
    name: &'a str,
    documents: Documents<'a>,
    report: &mut ProblemReport<'a>,
) -> Option<PackageModel<'a>> {
    let targets = Targets {
        channels: documents.channels.keys().copied().collect(),
        bundles: documents.bundles.keys().copied().collect(),
    };
    let is_whole = documents
        .channels
        .values()
        .all(|found| found.content.is_some());
    let mut bundles: Vec<_> = documents
        .bundles
        .into_iter()
        .filter_map(|(name, found)| Bundle::read(name, found.origin, found.content?, report))
        .map(|(bundle, _)| bundle)
        .collect();
    let mut channels: Vec<_> = documents
        .channels
        .into_iter()
        .filter_map(|(name, found)| channel(name, found, &targets, report))
        .collect();
    if is_whole {
        check_membership(&bundles, &channels, report);
    }
    let mut deprecation = None;
    if let Some(TypedDocument {
        origin,
        content: Some(document),
    }) = documents.deprecations
    {
        let entries = valid_deprecations(document, &targets, origin, report);
        deprecation = deprecate(entries, &mut channels, &mut bundles);
    }
    let TypedDocument { origin, content } = documents.package?;
    check_versions(bundles.iter(), origin, report);
    let document = content?;
    check_package(name, &document, &targets, origin, report);
    Some(PackageModel {
        name,
        origin,
        default_channel: document.default_channel,
        icon: document.icon,
        description: document.description,
        deprecation,
        properties: document.properties,
        channels,
        bundles,
    })
}

fn channel<'a>(
    name: &'a str,
    found: TypedDocument<'a, ChannelDocument<'a>>,
    targets: &Targets<'_>,
    report: &mut ProblemReport<'a>,
) -> Option<ChannelModel<'a>> {
    let TypedDocument { origin, content } = found;
    let ChannelDocument {
        mut entries,
        properties,
    } = content?;
    let package = report.package();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    entries.dedup_by(|second, first| {
        let is_twice = second.name == first.name;
        if is_twice {
            let name = format!("package {package:?}, channel {name:?}");
            let text = format!("invalid {name}: duplicate entry {:?}", first.name);
            report.add(Rule::EntryUnique, origin, text);
        }
        is_twice
    });
    let named = entries.iter().map(|entry| &*entry.name);
    for missing in named.filter(|name| !targets.bundles.contains(name)) {
        let text = format!(
            "no olm.bundle blobs found in package {package:?} for olm.channel entries [{missing}] of channel {name:?}"
        );
        report.add_of_bundle(missing, Rule::EntryBundle, origin, text);
    }
    // A missing head is reported, and fails the assembly.
    let (head, chain_end) = check_channel(name, &entries, origin, report).unwrap_or_default();
    Some(ChannelModel {
        name,
        origin,
        deprecation: None,
        properties,
        entries,
        head,
        chain_end,
    })
}

/// Checks that every bundle is an entry of some channel.
fn check_membership(
    bundles: &[Bundle<'_>],
    channels: &[ChannelModel<'_>],
    report: &mut ProblemReport<'_>,
) {
    let entries: HashSet<&str> = channels
        .iter()
        .flat_map(|channel| &channel.entries)
        .map(|entry| &*entry.name)
        .collect();
    let package = report.package();
    for bundle in bundles
        .iter()
        .filter(|bundle| !entries.contains(bundle.name))
    {
        let text = format!(
            "package {package:?}, bundle {:?} not found in any channel entries",
            bundle.name
        );
        report.add_of_bundle(bundle.name, Rule::BundleInChannel, bundle.origin, text);
    }
}

fn check_package(
    name: &str,
    document: &PackageDocument<'_>,
    targets: &Targets<'_>,
    origin: &DocumentOrigin,
    report: &mut ProblemReport<'_>,
) {
    if name.is_empty() {
        let text = "config contains package with no name";
        report.add(Rule::PackageNamed, origin, text);
    } else if let Some(flaw) = label_flaw(name) {
        let text = format!("invalid package name {name:?}: {flaw}");
        report.add(Rule::PackageName, origin, text);
    }
    if targets.channels.is_empty() {
        let text = format!("invalid package {name:?}: package must contain at least one channel");
        report.add(Rule::PackageChannels, origin, text);
    }
    let default = &*document.default_channel;
    if default.is_empty() {
        let text = format!("invalid package {name:?}: default channel must be set");
        report.add(Rule::DefaultChannel, origin, text);
    } else if !targets.channels.contains(default) {
        let text = format!(
            "invalid package {name:?}: default channel {default:?} not found in channels list: channel must contain at least one bundle"
        );
        report.add(Rule::DefaultChannelKnown, origin, text);
    }
}

/// Sets the deprecation messages; returns that of the package.
fn deprecate<'a>(
    entries: Vec<DeprecationEntry<'a>>,
    channels: &mut [ChannelModel<'a>],
    bundles: &mut [Bundle<'a>],
) -> Option<Cow<'a, str>> {
    let mut package = None;
    for entry in entries {
        let name = &*entry.reference.name;
        let noted = match &*entry.reference.schema {
            CHANNEL => channels
                .iter_mut()
                .find(|channel| channel.name == name)
                .map(|channel| &mut channel.deprecation),
            BUNDLE => bundles
                .binary_search_by(|bundle| bundle.name.cmp(name))
                .ok()
                .map(|index| &mut bundles[index].deprecation),
            _ => Some(&mut package),
        };
        if let Some(noted) = noted {
            *noted = Some(entry.message);
        }
    }
    package
}
