//! Validation and summary of a configuration.

use std::path::PathBuf;

use ::mirror::config::{self, Configuration, LoadError};
use ::mirror::names::catalog::unique_name;
use clap::Args;
use model::image_set::{
    ImageSet, MirrorSelection, OperatorSelection, PlatformSelection, ReleaseChannel, Storage,
};
use service::Error;

use crate::terminal;

/// Arguments of `atoll mirror check`.
#[derive(Debug, Clone, Args)]
pub(crate) struct CheckArgs {
    /// ImageSetConfiguration or DeleteImageSetConfiguration, in YAML or JSON
    config: PathBuf,
}

/// Prints a summary, or all problems.
///
/// Errors: an unreadable or invalid configuration.
pub(crate) fn run(arguments: &CheckArgs) -> Result<(), Error> {
    let doing = || format!("checking {}", arguments.config.display());
    let reason = match config::load(&arguments.config) {
        Ok(configuration) => {
            terminal::print(&summary(&configuration).join("\n"));
            return Ok(());
        }
        Err(error) => {
            if let LoadError::Wrong { problems, .. } = &error {
                terminal::print(&error.to_string());
                format!("{} problems were found", problems.count())
            } else {
                model::error::chain(&error)
            }
        }
    };
    Err(Error::new(doing(), reason))
}

fn summary(configuration: &Configuration) -> Vec<String> {
    match configuration {
        Configuration::Mirror(set) => {
            let mut lines = vec!["valid; mirrors:".to_owned()];
            content(&set.mirror, &mut lines);
            metadata(set, &mut lines);
            lines
        }
        Configuration::Delete(delete) => {
            let mut lines = vec!["valid; deletes:".to_owned()];
            content(delete, &mut lines);
            lines
        }
    }
}

fn content(mirror: &MirrorSelection, lines: &mut Vec<String>) {
    platform(&mirror.platform, lines);
    if let Some(boot) = &mirror.boot_images {
        let architectures = match boot.architectures.as_slice() {
            [] => "the architectures of the releases".to_owned(),
            some => some.join(", "),
        };
        lines.push(format!("- boot images of releases: {architectures}"));
    }
    lines.extend(mirror.operators.iter().map(operator));
    let charts = &mirror.helm;
    for (kind, count) in [
        ("additional images", mirror.additional_images.len()),
        ("chart repositories", charts.repositories.len()),
        ("local charts", charts.local.len()),
        ("blocked image expressions", mirror.blocked_images.len()),
    ] {
        if count > 0 {
            lines.push(format!("- {kind}: {count}"));
        }
    }
}

fn platform(platform: &PlatformSelection, lines: &mut Vec<String>) {
    lines.extend(platform.channels.iter().map(channel));
    if let Some(release) = &platform.release {
        lines.push(format!("- release {release}"));
    }
    if !platform.channels.is_empty() {
        let architectures = match platform.architectures.as_slice() {
            [] => "amd64".to_owned(),
            some => some.join(", "),
        };
        lines.push(format!("- architectures of releases: {architectures}"));
    }
    if platform.graph {
        lines.push("- the upgrade graph".to_owned());
    }
}

fn channel(channel: &ReleaseChannel) -> String {
    let ReleaseChannel {
        name,
        kind,
        min_version,
        max_version,
        ..
    } = channel;
    let which = match (min_version.as_str(), max_version.as_str()) {
        ("", "") if channel.full => "all releases".to_owned(),
        ("", "") => "the newest release".to_owned(),
        (min, "") => format!("from {min}"),
        ("", max) => format!("up to {max}"),
        (min, max) if channel.shortest_path => format!("the shortest path from {min} to {max}"),
        (min, max) => format!("{min} to {max}"),
    };
    format!("- {kind} releases of {name}: {which}")
}

fn operator(operator: &OperatorSelection) -> String {
    let OperatorSelection {
        catalog, packages, ..
    } = operator;
    let names: Vec<_> = packages.iter().map(|it| it.name.as_str()).collect();
    let packages = match names.as_slice() {
        [] => "all packages".to_owned(),
        some => some.join(", "),
    };
    let how = if operator.full {
        "all bundles"
    } else {
        "channel heads where no versions are given"
    };
    let name = unique_name(operator);
    format!("- operators of {catalog}, recorded as {name}: {packages}; {how}")
}

/// Metadata storage and archive size.
fn metadata(set: &ImageSet, lines: &mut Vec<String>) {
    lines.push(match &set.storage {
        None => "metadata: not kept, so every run mirrors all images".to_owned(),
        Some(Storage::Local { path }) => format!("metadata: in the folder {path}"),
        Some(Storage::Registry { image, .. }) => format!("metadata: in the image {image}"),
    });
    if let Some(size) = set.archive_size {
        lines.push(format!("archive files: {size} GiB at most"));
    }
}
