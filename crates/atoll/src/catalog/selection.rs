//! What is wanted of a catalog, as a command line says it.

use ::catalog::filter::{ChannelSelection, PackageSelection, Selection};
use ::catalog::graph::Bounds;
use ::catalog::version::Version;

/// `PACKAGE`, `PACKAGE:CHANNEL`, either with versions behind `@`: `@1.2.0`, `@1.2.0..1.4.9`, `@1.2.0..`, `@..1.4.9`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeepArg {
    package: String,
    channel: Option<String>,
    bounds: Bounds,
}

/// `PACKAGE=CHANNEL`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DefaultChannelArg {
    package: String,
    channel: String,
}

/// Errors: what is wrong with it.
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
        None => Bounds::default(),
    };
    Ok(KeepArg {
        package: package.to_owned(),
        channel,
        bounds,
    })
}

fn bounds(text: &str) -> Result<Bounds, String> {
    let version = |text: &str| -> Result<Option<Version>, String> {
        if text.is_empty() {
            return Ok(None);
        }
        let version = text.parse::<Version>();
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
        return Err("the lowest version is higher than the highest".to_owned());
    }
    Ok(Bounds { min, max })
}

/// Errors: what is wrong with it.
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

/// All of it together: a package may be named once for each of its channels.
///
/// Errors: two wishes that contradict each other.
pub(super) fn selection(
    wishes: &[KeepArg],
    defaults: &[DefaultChannelArg],
    full: bool,
) -> Result<Selection, String> {
    let mut packages: Vec<PackageSelection> = Vec::new();
    for wish in wishes {
        let known = packages.iter_mut().find(|it| it.name == wish.package);
        let package = if let Some(known) = known {
            known
        } else {
            packages.push(PackageSelection {
                name: wish.package.clone(),
                ..PackageSelection::default()
            });
            packages.last_mut().expect("it was just added")
        };
        let twice = || format!("{} is named twice, with different versions", wish.package);
        match &wish.channel {
            None if package.bounds.is_open() => package.bounds = wish.bounds.clone(),
            None => return Err(twice()),
            Some(name) if package.channels.iter().any(|it| it.name == *name) => return Err(twice()),
            Some(name) => package.channels.push(ChannelSelection {
                name: name.clone(),
                bounds: wish.bounds.clone(),
            }),
        }
    }
    for default in defaults {
        let package = packages.iter_mut().find(|it| it.name == default.package);
        let package = package
            .ok_or_else(|| format!("{} has a default channel, but is not kept", default.package))?;
        package.default_channel = Some(default.channel.clone());
    }
    Ok(Selection { packages, full })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn wishes_are_read() {
        let wish = parse("etcd:stable@1.2.0..1.4.9").unwrap();
        assert_eq!(
            (wish.package.as_str(), wish.channel.as_deref()),
            ("etcd", Some("stable"))
        );
        assert_eq!(
            (wish.bounds.min, wish.bounds.max),
            (Some(version("1.2.0")), Some(version("1.4.9")))
        );
        let wish = parse("etcd@1.2.0").unwrap();
        assert_eq!(
            (wish.bounds.min.clone(), wish.bounds.max),
            (wish.bounds.min, Some(version("1.2.0")))
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
    fn wishes_come_together() {
        let wishes: Vec<_> = ["a:x", "b", "a:y@1.0.0.."]
            .map(|it| parse(it).unwrap())
            .into();
        let defaults = [parse_default("a=y").unwrap()];
        let selection = selection(&wishes, &defaults, true).unwrap();
        let [a, b] = selection.packages.as_slice() else {
            panic!("{selection:?}")
        };
        let channels: Vec<_> = a.channels.iter().map(|it| it.name.as_str()).collect();
        assert_eq!((a.name.as_str(), channels), ("a", vec!["x", "y"]));
        assert_eq!(a.default_channel.as_deref(), Some("y"));
        assert_eq!(b.name, "b");
    }

    #[test]
    fn contradictions_are_told() {
        let wishes = |texts: [&str; 2]| texts.map(|it| parse(it).unwrap());
        for texts in [["a:x", "a:x@1.0.0"], ["a@1.0.0", "a@2.0.0"]] {
            assert!(selection(&wishes(texts), &[], true).is_err(), "{texts:?}");
        }
        let defaults = [parse_default("c=x").unwrap()];
        assert!(selection(&wishes(["a", "b"]), &defaults, true).is_err());
        assert!(parse_default("c").is_err());
    }
}
