//! Members of a configuration that contradict each other.

use std::collections::{HashMap, HashSet};

use model::image_set::{
    IncludeBundle, IncludePackage, MirrorSelection, OperatorSelection, PlatformSelection,
};

use super::ImageSource;
use super::decode::Decoder;
use super::form::bundle_version;
use super::version::ConfigVersion;
use crate::names;

/// Checks the configuration below `path`. Empty values are optional, or reported already.
pub(super) fn mirror(
    decoder: &mut Decoder<'_>,
    path: &str,
    mirror: &MirrorSelection,
    version: Option<ConfigVersion>,
) {
    platform(decoder, &format!("{path}.platform"), &mirror.platform);
    let PlatformSelection {
        channels, release, ..
    } = &mirror.platform;
    if mirror.boot_images.is_some() && channels.is_empty() && release.is_none() {
        let why = format!("belongs to releases, and there are none: name some in {path}.platform");
        decoder.problem(&format!("{path}.bootImages"), why);
    }
    let path = format!("{path}.operators");
    catalogs(decoder, &path, &mirror.operators);
    for (index, it) in mirror.operators.iter().enumerate() {
        operator(decoder, &format!("{path}[{index}]"), it, version);
    }
}

/// Reports every catalog with the unique name of an earlier one, or with its name in the target, which lacks hosts.
fn catalogs(decoder: &mut Decoder<'_>, path: &str, operators: &[OperatorSelection]) {
    let (mut names, mut places) = (HashSet::new(), HashSet::new());
    for (index, it) in operators.iter().enumerate() {
        if it.catalog.is_empty() {
            continue;
        }
        let name = names::catalog::unique_name(it);
        let why = format!(
            "{name:?} has an earlier one's name in the target: give one of them another targetCatalog or targetTag"
        );
        let is_placed = place(it).is_some_and(|place| !places.insert(place));
        if !names.insert(name) || is_placed {
            decoder.problem(&format!("{path}[{index}].catalog"), why);
        }
    }
}

/// Repository and tag of a catalog in the target; nothing where the tag is that of a folder's content.
fn place(operator: &OperatorSelection) -> Option<String> {
    let (repository, tag) = names::catalog::named(operator).ok()?;
    let pinned = || match operator.catalog.parse().ok()? {
        ImageSource::Registry(reference) => {
            let rebuilt = names::catalog::rebuilt(operator, &reference.digest?);
            rebuilt.ok().map(|(_, tag)| tag)
        }
        ImageSource::Layout(_) => None,
    };
    let tag = tag.or_else(pinned)?;
    Some(format!("{repository}:{tag}"))
}

fn platform(decoder: &mut Decoder<'_>, path: &str, platform: &PlatformSelection) {
    if !platform.architectures.is_empty() && !platform.platforms.is_empty() {
        let why = "excludes architectures: leave one of them out";
        decoder.problem(&format!("{path}.platforms"), why);
    }
    let path = format!("{path}.channels");
    let names = platform.channels.iter().map(|it| it.name.clone());
    differ(
        decoder,
        &path,
        "name",
        names,
        "is named twice: leave one out",
    );
    for (index, channel) in platform.channels.iter().enumerate() {
        let path = format!("{path}[{index}]");
        range(decoder, &path, &channel.min_version, &channel.max_version);
    }
}

fn operator(
    decoder: &mut Decoder<'_>,
    path: &str,
    operator: &OperatorSelection,
    version: Option<ConfigVersion>,
) {
    let path = format!("{path}.packages");
    let packages = operator.packages.iter();
    let packages = packages.map(|it| (it.name.clone(), it));
    repeated(decoder, &path, packages, version);
    for (index, it) in operator.packages.iter().enumerate() {
        package(decoder, &format!("{path}[{index}]"), it, version);
    }
}

fn package(
    decoder: &mut Decoder<'_>,
    path: &str,
    package: &IncludePackage,
    version: Option<ConfigVersion>,
) {
    versions(decoder, path, &package.versions);
    let channels = format!("{path}.channels");
    let named = package.channels.iter().map(|it| (it.name.clone(), it));
    repeated(decoder, &channels, named, version);
    for (index, channel) in package.channels.iter().enumerate() {
        let path = format!("{channels}[{index}]");
        versions(decoder, &path, &channel.versions);
        let bounded = |it: &IncludeBundle| *it != IncludeBundle::default();
        if bounded(&channel.versions) && bounded(&package.versions) {
            let why = "bounds versions as its package does: set them in one place";
            decoder.problem(&path, why);
        }
    }
    let default = &package.default_channel;
    let is_kept = package.channels.iter().any(|it| it.name == *default);
    // In the later version all channels are kept where none is named.
    let is_any = package.channels.is_empty() && version == Some(ConfigVersion::V2Alpha1);
    if !default.is_empty() && !is_kept && !is_any {
        let why = format!("{default:?} is none of the package's channels here: name it among them");
        decoder.problem(&format!("{path}.defaultChannel"), why);
    }
}

fn versions(decoder: &mut Decoder<'_>, path: &str, versions: &IncludeBundle) {
    if !versions.min_version.is_empty() && !versions.min_bundle.is_empty() {
        let why = "excludes minVersion: leave one of them out";
        decoder.problem(&format!("{path}.minBundle"), why);
    }
    range(decoder, path, &versions.min_version, &versions.max_version);
}

fn range(decoder: &mut Decoder<'_>, path: &str, min: &str, max: &str) {
    let (Ok(lowest), Ok(highest)) = (bundle_version(min), bundle_version(max)) else {
        return;
    };
    if lowest > highest {
        let why = format!("{min} is above maxVersion, which is {max}");
        decoder.problem(&format!("{path}.minVersion"), why);
    }
}

/// Reports every element of a list that has the name of an earlier one. In the first version, an equal one counts once.
fn repeated<'a, T: PartialEq + 'a>(
    decoder: &mut Decoder<'_>,
    path: &str,
    elements: impl Iterator<Item = (String, &'a T)>,
    version: Option<ConfigVersion>,
) {
    let mut seen: HashMap<String, &T> = HashMap::new();
    for (index, (name, element)) in elements.enumerate() {
        let first = *seen.entry(name.clone()).or_insert(element);
        let is_same = version == Some(ConfigVersion::V1Alpha2) && first == element;
        if !name.is_empty() && !std::ptr::eq(first, element) && !is_same {
            let why = format!("{name:?} is named twice: leave one out");
            decoder.problem(&format!("{path}[{index}].name"), why);
        }
    }
}

/// Reports every element of a list that has the same `member` as an earlier one.
fn differ(
    decoder: &mut Decoder<'_>,
    path: &str,
    member: &str,
    values: impl Iterator<Item = String>,
    why: &str,
) {
    let mut seen = HashSet::new();
    for (index, value) in values.enumerate() {
        let text = format!("{value:?} {why}");
        if !value.is_empty() && !seen.insert(value) {
            decoder.problem(&format!("{path}[{index}].{member}"), text);
        }
    }
}
