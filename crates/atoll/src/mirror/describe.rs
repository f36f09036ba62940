//! Metadata of an archive.

use std::collections::BTreeMap;
use std::ffi::OsString;

use ::mirror::archive;
use clap::Args;
use model::image_set::{IncludeChannel, IncludePackage};
use model::mirror_metadata::{Association, CatalogStart, ChannelStart, MirrorMetadata};
use serde::Serialize as _;
use serde_json::ser::{PrettyFormatter, Serializer};
use service::{Error, ResultExt as _};

use super::archives_args::AccessArgs;
use crate::terminal;

/// Arguments of `atoll mirror describe`.
#[derive(Debug, Clone, Args)]
pub(crate) struct DescribeArgs {
    /// A file of an archive set, its folder, or the URL of either
    #[arg(value_name = "ARCHIVE_OR_DIR_OR_URL")]
    archive: OsString,
    /// Print a summary instead of the metadata
    #[arg(long)]
    summary: bool,
    #[command(flatten)]
    access: AccessArgs,
}

/// Prints the metadata.
///
/// Errors: a missing or unreadable archive.
pub(crate) fn run(arguments: &DescribeArgs) -> Result<(), Error> {
    let DescribeArgs {
        archive,
        summary,
        access,
    } = arguments;
    let opened = access.with_archives(archive, false, archive::describe);
    // A URL that is refused may hold a password.
    let described = opened.map_err(|e| e.chain()).doing("retrieving metadata")?;
    let failed = |reason: String| {
        Error::new(
            format!("retrieving metadata from {:?}", archive.display()),
            reason,
        )
    };
    let metadata = described.map_err(|e| failed(e.chain()))?;
    let text = if *summary {
        lines(&metadata).join("\n")
    } else {
        json(&metadata).map_err(|e| failed(e.to_string()))?
    };
    terminal::print(&text);
    Ok(())
}

/// JSON indented by one space, with HTML characters escaped. Source: oc-mirror v1, `describe`.
fn json(metadata: &MirrorMetadata) -> serde_json::Result<String> {
    let mut bytes = Vec::new();
    let form = PrettyFormatter::with_indent(b" ");
    metadata.serialize(&mut Serializer::with_formatter(&mut bytes, form))?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    for (character, escaped) in [
        ("<", "\\u003c"),
        (">", "\\u003e"),
        ("&", "\\u0026"),
        ("\u{2028}", "\\u2028"),
        ("\u{2029}", "\\u2029"),
    ] {
        // These characters occur only in strings.
        text = text.replace(character, escaped);
    }
    Ok(text)
}

fn lines(metadata: &MirrorMetadata) -> Vec<String> {
    let run = &metadata.past_mirror;
    let which = if metadata.single_use {
        "single use".to_owned()
    } else {
        format!("sequence {}", run.sequence)
    };
    let mut lines = vec![format!("set {}", metadata.uid), which];
    lines.push(format!("created at {}", time(run.timestamp)));
    for CatalogStart {
        catalog, packages, ..
    } in &run.operators
    {
        lines.push(format!(
            "- operators of {catalog}: {}",
            packages_text(packages)
        ));
    }
    for ChannelStart {
        channel,
        min_version,
    } in &run.platforms
    {
        lines.push(format!("- releases of {channel} from {min_version}"));
    }
    for image in &run.mirror.additional_images {
        lines.push(format!("- image {}", image.name));
    }
    lines.push(format!("images of this run: {}", counts(&run.associations)));
    if !metadata.past_associations.is_empty() {
        lines.push(format!(
            "images of all runs: {}",
            counts(&metadata.past_associations)
        ));
    }
    lines
}

fn packages_text(packages: &[IncludePackage]) -> String {
    if packages.is_empty() {
        return "all packages".to_owned();
    }
    let all: Vec<_> = packages.iter().map(package_text).collect();
    all.join(", ")
}

fn package_text(package: &IncludePackage) -> String {
    let of_channel =
        |IncludeChannel { name, versions }: &IncludeChannel| match versions.min_version.as_str() {
            "" => name.clone(),
            version => format!("{name} from {version}"),
        };
    let channels: Vec<_> = package.channels.iter().map(of_channel).collect();
    match channels.as_slice() {
        [] => package.name.clone(),
        some => format!("{} ({})", package.name, some.join(", ")),
    }
}

/// Images per type, without the parts of an index.
fn counts(associations: &[Association]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for association in associations.iter().filter(|it| it.name != it.id) {
        *counts.entry(association.kind.as_str()).or_default() += 1;
    }
    let all: Vec<_> = counts
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    if all.is_empty() {
        "none".to_owned()
    } else {
        all.join(", ")
    }
}

fn time(seconds: i64) -> String {
    match chrono::DateTime::from_timestamp(seconds, 0) {
        Some(time) => time.to_rfc3339(),
        None => seconds.to_string(),
    }
}
