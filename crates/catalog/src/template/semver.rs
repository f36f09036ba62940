//! Semantic-version templates: channels follow from the versions of the bundles. Source: operator-registry,
//! `alpha/template/semver`.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use located_yaml::Position;
use located_yaml::v1_1::Located;
use serde_json::{Value, json};

use super::fields::{
    Bundles, Misfit, TemplateImage, boolean, filled, list, member, members, only, text,
};
use super::legacy_release::package_property;
use crate::registry_v1::RenderedBundle;
use crate::schema::{CHANNEL, PACKAGE};
use crate::version::BundleVersion;
use crate::{Document, DocumentOrigin, read};

/// Schema of semantic-version templates.
pub(super) const SEMVER: &str = "olm.semver";

/// Channel archetypes by rising stability.
const ARCHETYPES: [&str; 3] = ["candidate", "fast", "stable"];
const MEMBERS: &[&str] = &[
    "schema",
    "generateMajorChannels",
    "generateMinorChannels",
    "defaultChannelTypePreference",
    "candidate",
    "fast",
    "stable",
];

/// Kinds of generated channels, one of a major or of a minor version, by rising preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stream {
    Major,
    Minor,
}

/// A semantic-version template.
#[derive(Debug)]
pub(super) struct SemverTemplate {
    streams: Vec<Stream>,
    preference: Stream,
    /// Images by archetype.
    images: [Vec<TemplateImage>; 3],
    place: Position,
}

/// A bundle of an archetype.
struct VersionedBundle<'a> {
    name: &'a str,
    package: String,
    version: BundleVersion,
    rendered: &'a RenderedBundle,
    place: Position,
}

/// An entry of a channel, with its edges.
#[derive(Debug)]
struct SemverEntry<'a> {
    archetype: usize,
    stream: Stream,
    channel: String,
    name: &'a str,
    version: &'a BundleVersion,
    replaces: &'a str,
    skips: Vec<&'a str>,
}

impl SemverTemplate {
    pub(super) fn read(root: &Located) -> Result<Self, Misfit> {
        let all = members(root, "a template")?;
        only(all, MEMBERS, "the template")?;
        let major = boolean(member(all, MEMBERS[1]), MEMBERS[1])?;
        let minor = boolean(member(all, MEMBERS[2]), MEMBERS[2])? || !major;
        let streams = [(Stream::Major, major), (Stream::Minor, minor)];
        let streams: Vec<_> = streams
            .into_iter()
            .filter(|it| it.1)
            .map(|it| it.0)
            .collect();
        let preference = member(all, MEMBERS[3]);
        let place = preference.map_or(root.place, |it| it.place);
        let preference = match text(preference, MEMBERS[3])? {
            "" if minor => Stream::Minor,
            "" | "major" => Stream::Major,
            "minor" => Stream::Minor,
            other => {
                let why = format!("unknown {} {other:?}: expected minor or major", MEMBERS[3]);
                return Err(Misfit::new(place, why));
            }
        };
        if !streams.contains(&preference) {
            let (name, flag) = match preference {
                Stream::Major => ("major", MEMBERS[1]),
                Stream::Minor => ("minor", MEMBERS[2]),
            };
            let why = format!("{} is {name}, and {flag} is not true", MEMBERS[3]);
            return Err(Misfit::new(place, why));
        }
        let mut images = [const { Vec::new() }; 3];
        for (archetype, images) in ARCHETYPES.into_iter().zip(&mut images) {
            let Some(found) = member(all, archetype) else {
                continue;
            };
            let found = members(found, archetype)?;
            only(found, &["bundles"], archetype)?;
            for entry in list(member(found, "bundles"), "bundles")? {
                let of_bundle = members(entry, "a bundle")?;
                only(of_bundle, &["image"], "a bundle")?;
                let image = member(of_bundle, "image");
                images.push(filled(image, entry.place, "the image of a bundle")?);
            }
        }
        if images.iter().all(Vec::is_empty) {
            let why = format!("no bundles specified: {} have none", ARCHETYPES.join(", "));
            return Err(Misfit::new(root.place, why));
        }
        Ok(Self {
            streams,
            preference,
            images,
            place: root.place,
        })
    }

    pub(super) fn images(&self) -> impl Iterator<Item = &TemplateImage> {
        self.images.iter().flatten()
    }

    pub(super) fn shift(&mut self, lines: usize) {
        self.place.line += lines;
        for named in self.images.iter_mut().flatten() {
            named.place.line += lines;
        }
    }

    pub(super) fn expand(
        &self,
        bundles: &Bundles,
        file: &Arc<Path>,
    ) -> Result<Vec<Document>, Misfit> {
        let mut archetypes = Vec::new();
        for images in &self.images {
            archetypes.push(of_archetype(images, bundles)?);
        }
        let package = same_package(archetypes.iter().flatten())?;
        archetypes.iter_mut().try_for_each(|it| sort(it))?;
        let all = || archetypes.iter().flatten();
        let mut entries = self.entries(&archetypes);
        let default = self.default_channel(&entries);
        link(&mut entries);
        let origin = DocumentOrigin {
            file: Arc::clone(file),
            line: self.place.line as u64,
        };
        let document = |json: Value| {
            let read = read::document(&json.to_string(), origin.clone());
            read.map_err(|why| Misfit::new(self.place, why))
        };
        let head = entries.iter().rfind(|it| it.channel == default);
        let head = head.and_then(|head| all().find(|it| it.name == head.name));
        let mut documents = vec![document(package_document(&package, &default, head))?];
        let channels: BTreeSet<&str> = entries.iter().map(|it| it.channel.as_str()).collect();
        for channel in channels {
            let entries = entries.iter().filter(|it| it.channel == channel);
            let entries: Vec<_> = entries.map(SemverEntry::output).collect();
            documents.push(document(
                json!({"schema": CHANNEL, "name": channel, "package": package, "entries": entries}),
            )?);
        }
        let mut seen = BTreeSet::new();
        let each = self.images().filter(|it| seen.insert(&it.image));
        let each = each.filter_map(|it| bundles.get(&it.image));
        documents.extend(each.map(|it| it.document.clone()));
        Ok(documents)
    }

    /// The entries of all channels without edges: by archetype, stream and version.
    fn entries<'a>(&self, archetypes: &'a [Vec<VersionedBundle<'a>>]) -> Vec<SemverEntry<'a>> {
        let mut entries = Vec::new();
        for (archetype, bundles) in archetypes.iter().enumerate() {
            for &stream in &self.streams {
                entries.extend(bundles.iter().map(|bundle| SemverEntry {
                    archetype,
                    stream,
                    channel: stream.channel(ARCHETYPES[archetype], &bundle.version),
                    name: bundle.name,
                    version: &bundle.version,
                    replaces: "",
                    skips: Vec::new(),
                }));
            }
        }
        entries
    }

    /// The channel of the most stable archetype whose lowest version is the highest; of several the preferred stream.
    fn default_channel(&self, entries: &[SemverEntry<'_>]) -> String {
        let mut firsts: Vec<&SemverEntry<'_>> = Vec::new();
        for entry in entries {
            if !firsts.iter().any(|it| it.channel == entry.channel) {
                firsts.push(entry);
            }
        }
        let is_preferred = |it: &SemverEntry<'_>| it.stream == self.preference;
        let default = firsts.into_iter().max_by(|a, b| {
            let by_version = (a.archetype, a.version).cmp(&(b.archetype, b.version));
            by_version.then_with(|| (is_preferred(a), a.stream).cmp(&(is_preferred(b), b.stream)))
        });
        default.map(|it| it.channel.clone()).unwrap_or_default()
    }
}

impl Stream {
    fn channel(self, archetype: &str, version: &BundleVersion) -> String {
        let (major, minor) = version.major_and_minor();
        match self {
            Self::Major => format!("{archetype}-v{major}"),
            Self::Minor => format!("{archetype}-v{major}.{minor}"),
        }
    }
}

impl SemverEntry<'_> {
    fn output(&self) -> Value {
        let mut entry = json!({"name": self.name});
        if !self.replaces.is_empty() {
            entry["replaces"] = json!(self.replaces);
        }
        if !self.skips.is_empty() {
            entry["skips"] = json!(self.skips);
        }
        entry
    }

    /// Entries of one line have edges among each other.
    fn line(&self) -> (usize, Stream, u64) {
        (
            self.archetype,
            self.stream,
            self.version.major_and_minor().0,
        )
    }
}

/// The bundles of an archetype.
fn of_archetype<'a>(
    images: &'a [TemplateImage],
    bundles: &'a Bundles,
) -> Result<Vec<VersionedBundle<'a>>, Misfit> {
    let mut all: Vec<VersionedBundle<'a>> = Vec::new();
    for named in images {
        let Some(rendered) = bundles.get(&named.image) else {
            let why = format!("{} is not rendered", named.image);
            return Err(Misfit::new(named.place, why));
        };
        let property =
            package_property(&rendered.document).map_err(|why| Misfit::new(named.place, why))?;
        let bundle = VersionedBundle {
            name: &rendered.document.name,
            package: property.package,
            version: property.version,
            rendered,
            place: named.place,
        };
        if all.iter().any(|it| it.name == bundle.name) {
            let why = format!("duplicate bundle name {:?} in one channel", bundle.name);
            return Err(Misfit::new(named.place, why));
        }
        all.push(bundle);
    }
    Ok(all)
}

/// Sorts the bundles of an archetype by version.
fn sort(all: &mut [VersionedBundle<'_>]) -> Result<(), Misfit> {
    all.sort_by(|a, b| a.version.cmp(&b.version));
    for pair in all.windows(2) {
        if pair[0].version == pair[1].version {
            let why = format!(
                "bundles {:?} and {:?} cannot be ordered: versions {} and {} differ in build metadata at most",
                pair[0].name, pair[1].name, pair[0].version, pair[1].version
            );
            return Err(Misfit::new(pair[1].place, why));
        }
    }
    Ok(())
}

/// The package of all bundles.
fn same_package<'a>(
    mut bundles: impl Iterator<Item = &'a VersionedBundle<'a>>,
) -> Result<String, Misfit> {
    let package = bundles
        .next()
        .map(|it| it.package.clone())
        .unwrap_or_default();
    match bundles.find(|it| it.package != package) {
        None => Ok(package),
        Some(other) => {
            let why = format!(
                "bundle {:?} is of package {:?}, and those before it are of {package:?}: a template has one package",
                other.name, other.package
            );
            Err(Misfit::new(other.place, why))
        }
    }
}

/// The package, with icon and description of the default channel's head.
fn package_document(name: &str, default: &str, head: Option<&VersionedBundle<'_>>) -> Value {
    let mut package = json!({"schema": PACKAGE, "name": name, "defaultChannel": default});
    let Some(RenderedBundle {
        description, icon, ..
    }) = head.map(|it| it.rendered)
    else {
        return package;
    };
    if !description.is_empty() {
        package["description"] = json!(description);
    }
    if let Some(icon) = icon {
        let data = BASE64_STANDARD.encode(&icon.data);
        package["icon"] = json!({"base64data": data, "mediatype": icon.media_type});
    }
    package
}

/// Links the highest patch version of each minor one: it replaces that of the minor version before, and skips all lower
/// ones of its major version.
fn link(entries: &mut [SemverEntry<'_>]) {
    let mut start = 0;
    while start < entries.len() {
        let line = entries[start].line();
        let length = entries[start..]
            .iter()
            .take_while(|it| it.line() == line)
            .count();
        let of_line = &mut entries[start..start + length];
        let (mut replaces, mut skipped) = ("", BTreeSet::new());
        for index in 0..of_line.len() {
            let minor = |entry: &SemverEntry<'_>| entry.version.major_and_minor().1;
            let next = of_line.get(index + 1).map(minor);
            let entry = &mut of_line[index];
            if next != Some(minor(entry)) {
                let others = skipped.iter().copied().filter(|it| *it != replaces);
                entry.skips = others.collect();
                entry.replaces = replaces;
                replaces = entry.name;
            }
            skipped.insert(entry.name);
        }
        start += length;
    }
}
