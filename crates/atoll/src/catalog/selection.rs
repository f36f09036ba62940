//! Selection of packages, channels and versions on the command line.

use ::catalog::filter::{CatalogSelection, ChannelSelection, PackageSelection};
use ::catalog::graph::VersionBounds;
use ::catalog::version::BundleVersion;

/// `PACKAGE`, `PACKAGE:CHANNEL`, either with versions behind `@`: `@1.2.0`, `@1.2.0..1.4.9`, `@1.2.0..`, `@..1.4.9`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeepArg {
    package: String,
    channel: Option<String>,
    bounds: VersionBounds,
}

/// `PACKAGE=CHANNEL`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DefaultChannelArg {
    package: String,
    channel: String,
}

/// Parses a [`KeepArg`].
///
/// Errors: the expected syntax.
pub(super) fn parse(text: &str) -> Result<KeepArg, String> {
    let (names, versions) = match text.split_once('@') {
        Some((names, versions)) => (names, Some(versions)),
        None => (text, None),
    };
    let (package, channel) = match names.split_once(':') {
        Some((package, channel)) => (package, Some(channel.to_owned())),
        None => (names, None),
    };
    if package.is_empty() || channel.as_deref() == Some("") {
        return Err("expected PACKAGE, PACKAGE:CHANNEL or either with @MIN..MAX".to_owned());
    }
    let bounds = match versions {
        Some(versions) => bounds(versions)?,
        None => VersionBounds::default(),
    };
    Ok(KeepArg {
        package: package.to_owned(),
        channel,
        bounds,
    })
}

fn bounds(text: &str) -> Result<VersionBounds, String> {
    let version = |text: &str| -> Result<Option<BundleVersion>, String> {
        if text.is_empty() {
            return Ok(None);
        }
        let version = text.parse::<BundleVersion>();
        version
            .map(Some)
            .map_err(|e| format!("version {text:?}: {e}"))
    };
    let (min, max) = text.split_once("..").unwrap_or((text, text));
    let (min, max) = (version(min)?, version(max)?);
    if min.is_none() && max.is_none() {
        return Err("expected a version, or MIN..MAX".to_owned());
    }
    if min.is_some() && max.is_some() && min > max {
        return Err("the minimum version is higher than the maximum".to_owned());
    }
    Ok(VersionBounds { min, max })
}

/// Parses a [`DefaultChannelArg`].
///
/// Errors: the expected syntax.
pub(super) fn parse_default(text: &str) -> Result<DefaultChannelArg, String> {
    match text.split_once('=') {
        Some((package, channel)) if !package.is_empty() && !channel.is_empty() => {
            Ok(DefaultChannelArg {
                package: package.to_owned(),
                channel: channel.to_owned(),
            })
        }
        _ => Err("expected PACKAGE=CHANNEL".to_owned()),
    }
}

/// Merges the arguments into a selection: a package may occur once per channel.
///
/// Errors: conflicting arguments.
pub(super) fn selection(
    keep: &[KeepArg],
    defaults: &[DefaultChannelArg],
    full: bool,
) -> Result<CatalogSelection, String> {
    let mut packages: Vec<PackageSelection> = Vec::new();
    for arg in keep {
        let known = packages.iter_mut().find(|it| it.name == arg.package);
        let package = if let Some(known) = known {
            known
        } else {
            packages.push(PackageSelection {
                name: arg.package.clone(),
                ..PackageSelection::default()
            });
            packages.last_mut().expect("it was just added")
        };
        let twice = || format!("{} is given twice, with different versions", arg.package);
        match &arg.channel {
            None if package.bounds.is_open() => package.bounds = arg.bounds.clone(),
            None => return Err(twice()),
            Some(name) if package.channels.iter().any(|it| it.name == *name) => return Err(twice()),
            Some(name) => package.channels.push(ChannelSelection {
                name: name.clone(),
                bounds: arg.bounds.clone(),
            }),
        }
    }
    for default in defaults {
        let package = packages.iter_mut().find(|it| it.name == default.package);
        let package = package
            .ok_or_else(|| format!("{} has a default channel, but is not kept", default.package))?;
        package.default_channel = Some(default.channel.clone());
    }
    Ok(CatalogSelection { packages, full })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> BundleVersion {
        text.parse().unwrap()
    }

    #[test]
    fn packages_channels_and_versions_are_parsed() {
        let arg = parse("etcd:stable@1.2.0..1.4.9").unwrap();
        assert_eq!(
            (arg.package.as_str(), arg.channel.as_deref()),
            ("etcd", Some("stable"))
        );
        assert_eq!(
            (arg.bounds.min, arg.bounds.max),
            (Some(version("1.2.0")), Some(version("1.4.9")))
        );
        let arg = parse("etcd@1.2.0").unwrap();
        assert_eq!(
            (arg.bounds.min.clone(), arg.bounds.max),
            (arg.bounds.min, Some(version("1.2.0")))
        );
        assert_eq!(parse("etcd@..1.0.0").unwrap().bounds.min, None);
        assert_eq!(parse("etcd@1.0.0..").unwrap().bounds.max, None);
        for wrong in [
            "",
            ":a",
            "a:",
            "a@",
            "a@..",
            "a@x",
            "a@2.0.0..1.0.0",
            "a@1.0",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn channels_of_a_package_are_merged() {
        let args: Vec<_> = ["a:x", "b", "a:y@1.0.0.."]
            .map(|it| parse(it).unwrap())
            .into();
        let defaults = [parse_default("a=y").unwrap()];
        let selection = selection(&args, &defaults, true).unwrap();
        let [a, b] = selection.packages.as_slice() else {
            panic!("{selection:?}")
        };
        let channels: Vec<_> = a.channels.iter().map(|it| it.name.as_str()).collect();
        assert_eq!((a.name.as_str(), channels), ("a", vec!["x", "y"]));
        assert_eq!(a.default_channel.as_deref(), Some("y"));
        assert_eq!(b.name, "b");
    }

    #[test]
    fn conflicting_arguments_are_refused() {
        let args = |texts: [&str; 2]| texts.map(|it| parse(it).unwrap());
        for texts in [["a:x", "a:x@1.0.0"], ["a@1.0.0", "a@2.0.0"]] {
            assert!(selection(&args(texts), &[], true).is_err(), "{texts:?}");
        }
        let defaults = [parse_default("c=x").unwrap()];
        assert!(selection(&args(["a", "b"]), &defaults, true).is_err());
        assert!(parse_default("c").is_err());
    }
}
