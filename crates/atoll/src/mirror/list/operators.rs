//! Operator catalogs and their packages. Source of the columns: oc-mirror v1, `list operators`.

use std::collections::BTreeSet;
use std::sync::Arc;

use ::catalog::Document;
use ::catalog::cache::CatalogCache;
use ::catalog::content::{
    ChannelModel, CsvLocation, PackageMetadata, PackageModel, UnpackedBundle,
};
use clap::Args;
use serde::Deserialize;
use service::{Error, ResultExt as _};

use crate::catalog::{Opener, each_package, table, with_package};
use crate::mirror::registry_args::SourceRegistryArgs;
use crate::terminal;

/// Published operator catalogs. Source: oc-mirror, `list operators`.
const CATALOGS: [&str; 4] = [
    "registry.redhat.io/redhat/redhat-operator-index",
    "registry.redhat.io/redhat/certified-operator-index",
    "registry.redhat.io/redhat/community-operator-index",
    "registry.redhat.io/redhat/redhat-marketplace-index",
];

/// Arguments of `list operators`.
#[derive(Debug, Clone, Args)]
pub(in crate::mirror) struct ListOperatorsArgs {
    /// List the catalogs published for a release
    #[arg(long, requires = "release")]
    catalogs: bool,
    /// Release
    #[arg(
        long = "version",
        id = "release",
        value_name = "X.Y",
        conflicts_with = "catalog"
    )]
    release: Option<String>,
    /// List the packages of this catalog: an image, a folder or an index.db
    #[arg(long)]
    catalog: Option<String>,
    /// List the channels of this package
    #[arg(long, requires = "catalog")]
    package: Option<String>,
    /// List the versions of this channel of the package
    #[arg(long, requires = "package")]
    channel: Option<String>,
    #[command(flatten)]
    registries: SourceRegistryArgs,
}

/// Prints the list.
///
/// Errors: no such catalog, package or channel.
pub(super) fn run(arguments: &ListOperatorsArgs) -> Result<(), Error> {
    let client = arguments.registries.source();
    let opener = Opener::new(client.doing("preparing to read catalogs")?)?;
    let Some(catalog) = &arguments.catalog else {
        return match &arguments.release {
            Some(release) => catalogs(&opener, release),
            None => releases(&opener),
        };
    };
    let cache = opener.cache(catalog)?;
    let lines = match (&arguments.package, &arguments.channel) {
        (None, _) => packages(&cache)?,
        (Some(package), None) => {
            describe_package(&cache, catalog, package, |package, documents| {
                Ok(channels(package, documents))
            })?
        }
        (Some(package), Some(channel)) => {
            describe_package(&cache, catalog, package, |package, _| {
                versions(package, channel)
            })?
        }
    };
    terminal::print(&lines);
    Ok(())
}

/// Prints the releases that the first catalog is published for.
fn releases(opener: &Opener) -> Result<(), Error> {
    terminal::print("Available OpenShift OperatorHub catalog versions:");
    for release in published(opener, CATALOGS[0])? {
        terminal::print(&format!("  {release}"));
    }
    Ok(())
}

fn catalogs(opener: &Opener, release: &str) -> Result<(), Error> {
    let release = release.trim_start_matches('v');
    let wanted = format!("v{release}");
    terminal::print(&format!(
        "Available OpenShift OperatorHub catalogs:\nOpenShift {release}:"
    ));
    let mut is_any = false;
    for catalog in CATALOGS {
        if published(opener, catalog)?.contains(&wanted) {
            terminal::print(&format!("{catalog}:{wanted}"));
            is_any = true;
        }
    }
    if is_any {
        return Ok(());
    }
    let reason = "no catalog is published for this release: `list operators` lists the releases";
    Err(Error::new(format!("listing catalogs for {wanted}"), reason))
}

/// Releases among the tags of a repository.
fn published(opener: &Opener, catalog: &str) -> Result<BTreeSet<String>, Error> {
    let image: oci::Reference = catalog
        .parse()
        .map_err(|e: oci::Error| Error::new(format!("asking for {catalog}"), e))?;
    let tags = opener.tags(&image)?;
    let releases = tags.iter().map(|tag| {
        let (release, _) = tag.as_str().split_once('-').unwrap_or((tag.as_str(), ""));
        release.to_owned()
    });
    Ok(releases.collect())
}

fn packages(cache: &Arc<CatalogCache>) -> Result<String, Error> {
    let mut rows = Vec::new();
    each_package(cache, |package, documents| {
        rows.push(row(package, documents));
        Ok(())
    })?;
    Ok(package_table(&rows))
}

fn describe_package(
    cache: &Arc<CatalogCache>,
    catalog: &str,
    name: &str,
    text: impl FnOnce(&PackageModel<'_>, &[Document]) -> Result<String, Error>,
) -> Result<String, Error> {
    if let Some(text) = with_package(cache, name, text)? {
        return Ok(text);
    }
    let groups = cache.groups();
    let meant = nearest(name, groups.keys().copied());
    let reason = format!("package {name:?} not found{meant}");
    Err(Error::new(format!("reading {catalog}"), reason))
}

fn channels(package: &PackageModel<'_>, documents: &[Document]) -> String {
    let row = |channel: &ChannelModel<'_>| {
        let head = channel.head().name.to_string();
        [package.name.to_owned(), channel.name.to_owned(), head]
    };
    let rows: Vec<_> = package.channels.iter().map(row).collect();
    let channels = table(["PACKAGE", "CHANNEL", "HEAD"], &rows);
    let package = package_table(&[self::row(package, documents)]);
    format!("{package}\n\n{channels}")
}

fn versions(package: &PackageModel<'_>, name: &str) -> Result<String, Error> {
    let channel = package.channel(name).ok_or_else(|| {
        let meant = nearest(name, package.channels.iter().map(|channel| channel.name));
        let known: Vec<_> = package.channels.iter().map(|it| it.name).collect();
        let reason = format!(
            "channel {name:?} not found{meant}: there are {}",
            known.join(", ")
        );
        Error::new(format!("reading the package {}", package.name), reason)
    })?;
    let bundles = channel.entries.iter();
    let mut bundles: Vec<_> = bundles
        .filter_map(|entry| package.bundle(&entry.name))
        .collect();
    bundles.sort_by(|a, b| a.version.cmp(&b.version));
    let versions = bundles.iter().map(|bundle| &*bundle.version_text);
    let lines: Vec<_> = std::iter::once("VERSIONS").chain(versions).collect();
    Ok(lines.join("\n"))
}

fn package_table(rows: &[[String; 3]]) -> String {
    table(["NAME", "DISPLAY NAME", "DEFAULT CHANNEL"], rows)
}

fn row(package: &PackageModel<'_>, documents: &[Document]) -> [String; 3] {
    [
        package.name.to_owned(),
        display_name(package, documents).unwrap_or_default(),
        package.default_channel.to_string(),
    ]
}

/// Display name in the CSV of the default channel's head.
fn display_name(package: &PackageModel<'_>, documents: &[Document]) -> Option<String> {
    #[derive(Deserialize)]
    struct Shown {
        spec: Spec,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        display_name: String,
    }
    let head = &package.channel(&package.default_channel)?.head().name;
    let mut documents = documents.iter();
    let document = documents.find(|it| it.schema == "olm.bundle" && it.name == **head)?;
    let contents = UnpackedBundle::new(document, &PackageMetadata::default())?.contents;
    let csv = match &contents.csv {
        CsvLocation::Nowhere => return None,
        CsvLocation::Object(index) => contents.objects.get(*index)?,
        CsvLocation::Beside(csv) => csv,
    };
    let shown: Shown = serde_json::from_str(csv).ok()?;
    Some(shown.spec.display_name)
}

/// Suggestion for a misspelled name.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    match model::nearest(name, known, (name.len() / 3).max(1)) {
        Some(meant) => format!("; {meant} may be meant"),
        None => String::new(),
    }
}
