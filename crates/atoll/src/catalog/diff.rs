//! What changed from one catalog to another.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use serde::Serialize;
use service::Error;

use super::Output;
use super::source::Access;
use super::summary::{Channel, Summary, with_package};
use crate::terminal;

/// What is compared.
#[derive(Debug, Clone, Args)]
pub(crate) struct Arguments {
    /// The older one: a folder or an image
    from: String,
    /// The newer one
    to: String,
    /// How it is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    #[command(flatten)]
    access: Access,
}

/// One thing that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Change {
    #[serde(rename = "change")]
    kind: Kind,
    package: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bundle: Option<String>,
    /// What it was, where it is something else now.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Kind {
    Added,
    Removed,
    DefaultChannel,
    Head,
    Upgrades,
    Deprecation,
}

/// Compares package by package and prints what differs.
///
/// Errors: a catalog that cannot be read.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let opener = arguments.access.open()?;
    let (from, to) = (opener.cache(&arguments.from)?, opener.cache(&arguments.to)?);
    let names: BTreeSet<&str> = from.groups().union(&to.groups()).copied().collect();
    for name in names {
        let old = with_package(&from, name, |package, _| Ok(Summary::of(package)))?;
        let new = with_package(&to, name, |package, _| Ok(Summary::of(package)))?;
        for change in changes(old.as_ref(), new.as_ref()) {
            terminal::say(&match arguments.output {
                Output::Text => change.line(),
                Output::Json => {
                    serde_json::to_string(&change).map_err(|e| Error::new("printing", e))?
                }
            });
        }
    }
    Ok(())
}

fn changes(old: Option<&Summary>, new: Option<&Summary>) -> Vec<Change> {
    match (old, new) {
        (None, None) => Vec::new(),
        (Some(old), None) => vec![Change::new(Kind::Removed, old)],
        (None, Some(new)) => vec![Change::new(Kind::Added, new)],
        (Some(old), Some(new)) => inside(old, new),
    }
}

fn inside(old: &Summary, new: &Summary) -> Vec<Change> {
    let of = |kind| Change::new(kind, new);
    let mut changes = Vec::new();
    if old.default_channel != new.default_channel {
        changes.push(of(Kind::DefaultChannel).values(&old.default_channel, &new.default_channel));
    }
    if old.deprecation != new.deprecation {
        changes
            .push(of(Kind::Deprecation).maybe(old.deprecation.as_ref(), new.deprecation.as_ref()));
    }
    let channels = |summary: &Summary| -> BTreeMap<String, Channel> {
        let channels = summary.channels.iter();
        channels.map(|it| (it.name.clone(), it.clone())).collect()
    };
    let (before, after) = (channels(old), channels(new));
    for (kind, name) in added_and_removed(&before, &after) {
        changes.push(of(kind).channel(name));
    }
    for (name, now) in &after {
        let Some(was) = before.get(name) else {
            continue;
        };
        if was.head != now.head {
            changes.push(of(Kind::Head).channel(name).values(&was.head, &now.head));
        } else if was.entries != now.entries {
            changes.push(of(Kind::Upgrades).channel(name));
        }
        if was.deprecation != now.deprecation {
            let change = of(Kind::Deprecation).channel(name);
            changes.push(change.maybe(was.deprecation.as_ref(), now.deprecation.as_ref()));
        }
    }
    for (kind, name) in added_and_removed(&old.bundles, &new.bundles) {
        let mut change = of(kind);
        change.bundle = Some(name.clone());
        changes.push(change);
    }
    changes
}

fn added_and_removed<'a, T>(
    old: &'a BTreeMap<String, T>,
    new: &'a BTreeMap<String, T>,
) -> impl Iterator<Item = (Kind, &'a String)> {
    let removed = old.keys().filter(|name| !new.contains_key(*name));
    let added = new.keys().filter(|name| !old.contains_key(*name));
    let removed = removed.map(|name| (Kind::Removed, name));
    removed.chain(added.map(|name| (Kind::Added, name)))
}

impl Change {
    fn new(kind: Kind, package: &Summary) -> Self {
        Self {
            kind,
            package: package.name.clone(),
            channel: None,
            bundle: None,
            from: None,
            to: None,
        }
    }

    fn channel(mut self, name: &str) -> Self {
        self.channel = Some(name.to_owned());
        self
    }

    fn values(self, from: &str, to: &str) -> Self {
        self.maybe(Some(&from.to_owned()), Some(&to.to_owned()))
    }

    fn maybe(mut self, from: Option<&String>, to: Option<&String>) -> Self {
        (self.from, self.to) = (from.cloned(), to.cloned());
        self
    }

    fn line(&self) -> String {
        let sign = match self.kind {
            Kind::Added => '+',
            Kind::Removed => '-',
            _ => '~',
        };
        let mut line = format!("{sign} package {}", self.package);
        for (noun, name) in [("channel", &self.channel), ("bundle", &self.bundle)] {
            if let Some(name) = name {
                line.extend([" ", noun, " ", name]);
            }
        }
        line.push_str(match self.kind {
            Kind::Added | Kind::Removed => return line,
            Kind::DefaultChannel => ": default channel ",
            Kind::Head => ": head ",
            Kind::Upgrades => ": other upgrades",
            Kind::Deprecation => ": deprecation ",
        });
        if self.from.is_some() || self.to.is_some() {
            let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
            line.extend([&shown(&self.from), " -> ", &shown(&self.to)]);
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(default: &str, channels: &[(&str, &str)]) -> Summary {
        let channel = |(name, head): &(&str, &str)| Channel {
            name: (*name).to_owned(),
            head: (*head).to_owned(),
            head_version: String::new(),
            deprecation: None,
            entries: Vec::new(),
        };
        let bundles = channels
            .iter()
            .map(|(_, head)| ((*head).to_owned(), String::new()));
        Summary {
            name: "p".to_owned(),
            default_channel: default.to_owned(),
            deprecation: None,
            channels: channels.iter().map(channel).collect(),
            bundles: bundles.collect(),
        }
    }

    #[test]
    fn every_change_has_its_line() {
        let old = summary("a", &[("a", "v1"), ("b", "v1")]);
        let mut new = summary("c", &[("a", "v2"), ("c", "v2")]);
        new.deprecation = Some("gone soon".to_owned());
        let lines: Vec<_> = changes(Some(&old), Some(&new))
            .iter()
            .map(Change::line)
            .collect();
        assert_eq!(
            lines,
            [
                "~ package p: default channel a -> c",
                "~ package p: deprecation none -> gone soon",
                "- package p channel b",
                "+ package p channel c",
                "~ package p channel a: head v1 -> v2",
                "- package p bundle v1",
                "+ package p bundle v2",
            ]
        );
        assert!(changes(Some(&old), Some(&old)).is_empty());
        assert_eq!(changes(None, Some(&old))[0].line(), "+ package p");
        assert_eq!(changes(Some(&old), None)[0].line(), "- package p");
    }
}
