//! Platform releases and their channels. Source of the lines: oc-mirror v1, `list releases`.

use std::collections::BTreeSet;

use ::mirror::platform::Updates;
use clap::Args;
use model::image_set::ReleaseKind;
use oci::{Reference, Tag};
use semver::Version;
use service::runtime;
use service::{Error, ResultExt as _};

use crate::catalog::Opener;
use crate::mirror::registry_args::SourceRegistryArgs;
use crate::mirror::release_args::UpdateArgs;
use crate::terminal;

/// Repository of published releases. Source: oc-mirror, `list releases`.
const RELEASES: &str = "quay.io/openshift-release-dev/ocp-release";
const DOING: &str = "listing releases";

/// Arguments of `list releases`.
#[derive(Debug, Clone, Args)]
pub(in crate::mirror) struct ListReleasesArgs {
    /// List the versions of this channel
    #[arg(long)]
    channel: Option<String>,
    /// List the versions of the stable channel of this release, or with --channels its channels
    #[arg(long = "version", id = "release", value_name = "X.Y")]
    release: Option<String>,
    /// List the channels of a release
    #[arg(long, requires = "release")]
    channels: bool,
    /// Comma-separated architectures
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "amd64"
    )]
    filter_by_archs: Vec<String>,
    #[command(flatten)]
    updates: UpdateArgs,
    #[command(flatten)]
    registries: SourceRegistryArgs,
}

/// Prints the list.
///
/// Errors: no such channel; an update service or registry that does not answer.
pub(super) fn run(arguments: &ListReleasesArgs) -> Result<(), Error> {
    let release = arguments.release.as_deref().map(minor).transpose()?;
    let channel = match (&arguments.channel, &release) {
        (Some(channel), _) => channel.clone(),
        (None, Some(release)) => format!("stable-{release}"),
        (None, None) => return published(arguments),
    };
    let failed = |e: model::Error| Error::new(DOING, e.chain());
    let ca_pem = arguments.registries.ca_pem().map_err(failed)?;
    let sources = arguments
        .updates
        .sources(ca_pem.as_deref())
        .map_err(failed)?;
    let mut updates = Updates::new(&sources);
    let lines = runtime::block_on(async {
        match release {
            Some(release) if arguments.channels => channels(&mut updates, &release).await,
            _ => versions(&mut updates, &channel, &arguments.filter_by_archs).await,
        }
    })?;
    terminal::print(&lines.map_err(failed)?.join("\n"));
    Ok(())
}

/// Prints the published releases as `x.y`.
fn published(arguments: &ListReleasesArgs) -> Result<(), Error> {
    let client = arguments.registries.source();
    let opener = Opener::new(client.doing(DOING)?)?;
    let image: Reference = RELEASES
        .parse()
        .map_err(|e: oci::Error| Error::new(DOING, e))?;
    let tags = opener.tags(&image)?;
    terminal::print("Available OpenShift Container Platform release versions:");
    for (major, minor) in minors(&tags) {
        terminal::print(&format!("  {major}.{minor}"));
    }
    Ok(())
}

fn minors(tags: &[Tag]) -> BTreeSet<(u64, u64)> {
    let minor = |tag: &Tag| {
        let (major, rest) = tag.as_str().split_once('.')?;
        let (minor, _) = rest.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    tags.iter().filter_map(minor).collect()
}

async fn channels(updates: &mut Updates<'_>, release: &str) -> Result<Vec<String>, model::Error> {
    let mut lines = vec![
        format!("Listing channels for version {release}."),
        String::new(),
    ];
    lines.extend(updates.channels(release).await?);
    Ok(lines)
}

async fn versions(
    updates: &mut Updates<'_>,
    channel: &str,
    architectures: &[String],
) -> Result<Vec<String>, model::Error> {
    let mut lines = Vec::new();
    if channel.starts_with("stable") {
        lines.push("Listing stable channels. Use --channel=<channel-name> to filter.".to_owned());
        lines.push("Use list releases --channels to discover other channels.".to_owned());
        lines.push(String::new());
    }
    for architecture in architectures {
        let graph = updates
            .graph(ReleaseKind::Ocp, architecture, channel)
            .await?;
        lines.push(format!("Channel: {channel}"));
        lines.push(format!("Architecture: {architecture}"));
        let versions: BTreeSet<&Version> = graph.releases().iter().map(|it| &it.version).collect();
        lines.extend(versions.into_iter().map(Version::to_string));
    }
    Ok(lines)
}

/// Major and minor of a version.
fn minor(text: &str) -> Result<String, Error> {
    let text = text.trim_start_matches('v');
    let numbers: Vec<&str> = text.splitn(3, '.').collect();
    match numbers.as_slice() {
        [major, minor, ..] if [major, minor].iter().all(|it| it.parse::<u32>().is_ok()) => {
            Ok(format!("{major}.{minor}"))
        }
        _ => {
            let reason = format!("{text:?} is not a version such as 4.18");
            Err(Error::new("reading --version", reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_grouped_by_minor_version() {
        let tags = [
            "4.10.3-x86_64",
            "4.9.0-rc.1",
            "4.9.7-multi",
            "latest",
            "4.x.1",
            "4",
        ];
        let tags = tags.map(|tag| tag.parse().unwrap());
        assert_eq!(Vec::from_iter(minors(&tags)), [(4, 9), (4, 10)]);
        for (text, expected) in [
            ("4.8", Some("4.8")),
            ("v4.18.3", Some("4.18")),
            ("4", None),
            ("a.b", None),
        ] {
            assert_eq!(minor(text).ok().as_deref(), expected, "{text}");
        }
    }
}
