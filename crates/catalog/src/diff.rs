//! Differences between two versions of a catalog, package by package.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::content::{Bundle, ChannelModel, PackageModel};
use crate::schema::{Property, is_core};
use crate::{CatalogProblems, Document};

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CatalogChange {
    #[serde(rename = "change")]
    pub kind: ChangeKind,
    /// Empty for documents without a package.
    pub package: String,
    /// The changed part; `None` for the package itself.
    #[serde(flatten)]
    pub subject: Option<Subject>,
    /// Old value of a changed field; `None` when it was unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// New value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// Changed part of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Subject {
    Channel(String),
    Bundle(String),
    /// All documents of a custom schema.
    Schema(String),
}

/// Kind of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ChangeKind {
    Added,
    Removed,
    DefaultChannel,
    Head,
    /// Same head, other upgrade edges.
    Upgrades,
    Deprecation,
    Image,
    /// Any other content.
    Content,
}

/// Compares the documents of one package, or those without a package; either side may be empty.
///
/// Errors: validation errors of either side.
pub fn diff(old: &[Document], new: &[Document]) -> Result<Vec<CatalogChange>, CatalogProblems> {
    let package = [old, new].into_iter().flatten().next();
    let mut changes = Changes {
        package: package.map_or("", Document::group),
        all: Vec::new(),
    };
    let is_on_both_sides = match (PackageModel::assemble(old)?, PackageModel::assemble(new)?) {
        (Some(old), Some(new)) => {
            changes.packages(&old, &new);
            true
        }
        (None, None) => true,
        (old, _) => {
            changes.one_sided(None, old.is_some());
            false
        }
    };
    if is_on_both_sides {
        changes.named(
            schemas(old),
            schemas(new),
            Subject::Schema,
            |changes, on, old, new| {
                changes.content(Some(on), old == new);
            },
        );
    }
    Ok(changes.all)
}

struct Changes<'a> {
    package: &'a str,
    all: Vec<CatalogChange>,
}

impl Changes<'_> {
    fn packages(&mut self, old: &PackageModel<'_>, new: &PackageModel<'_>) {
        let default = [old, new].map(|it| Some(&*it.default_channel));
        self.value(ChangeKind::DefaultChannel, None, default);
        let deprecation = [old, new].map(|it| it.deprecation.as_deref());
        self.value(ChangeKind::Deprecation, None, deprecation);
        let [one, other] = [old, new].map(|it| (&it.icon, &it.description, values(&it.properties)));
        self.content(None, one == other);
        let [was, is] = [old, new].map(|it| it.channels.iter().map(|it| (it.name, it)).collect());
        self.named(was, is, Subject::Channel, Self::channels);
        let [was, is] = [old, new].map(|it| it.bundles.iter().map(|it| (it.name, it)).collect());
        self.named(was, is, Subject::Bundle, Self::bundles);
    }

    fn channels(&mut self, on: &Subject, old: &ChannelModel<'_>, new: &ChannelModel<'_>) {
        let heads = [old, new].map(|it| &*it.head().name);
        self.value(ChangeKind::Head, Some(on), heads.map(Some));
        if heads[0] == heads[1] && old.entries != new.entries {
            self.add(ChangeKind::Upgrades, Some(on), [None; 2]);
        }
        let deprecation = [old, new].map(|it| it.deprecation.as_deref());
        self.value(ChangeKind::Deprecation, Some(on), deprecation);
        self.content(Some(on), values(&old.properties) == values(&new.properties));
    }

    fn bundles(&mut self, on: &Subject, old: &Bundle<'_>, new: &Bundle<'_>) {
        self.value(
            ChangeKind::Image,
            Some(on),
            [old, new].map(|it| Some(&*it.image)),
        );
        let deprecation = [old, new].map(|it| it.deprecation.as_deref());
        self.value(ChangeKind::Deprecation, Some(on), deprecation);
        let [one, other] = [old, new].map(|it| (values(&it.properties), &it.related_images));
        self.content(Some(on), one == other);
    }

    /// Adds one-sided names and compares common ones.
    fn named<'n, T>(
        &mut self,
        old: BTreeMap<&'n str, T>,
        mut new: BTreeMap<&'n str, T>,
        subject: fn(String) -> Subject,
        compare: impl Fn(&mut Self, &Subject, T, T),
    ) {
        for (name, old) in old {
            let on = subject(name.to_owned());
            match new.remove(name) {
                Some(new) => compare(self, &on, old, new),
                None => self.one_sided(Some(&on), true),
            }
        }
        for name in new.into_keys() {
            self.one_sided(Some(&subject(name.to_owned())), false);
        }
    }

    fn one_sided(&mut self, on: Option<&Subject>, was_there: bool) {
        let kind = if was_there {
            ChangeKind::Removed
        } else {
            ChangeKind::Added
        };
        self.add(kind, on, [None; 2]);
    }

    fn content(&mut self, on: Option<&Subject>, is_same: bool) {
        if !is_same {
            self.add(ChangeKind::Content, on, [None; 2]);
        }
    }

    fn value(&mut self, kind: ChangeKind, on: Option<&Subject>, values: [Option<&str>; 2]) {
        if values[0] != values[1] {
            self.add(kind, on, values);
        }
    }

    fn add(&mut self, kind: ChangeKind, on: Option<&Subject>, values: [Option<&str>; 2]) {
        let [from, to] = values.map(|value| value.map(str::to_owned));
        self.all.push(CatalogChange {
            kind,
            package: self.package.to_owned(),
            subject: on.cloned(),
            from,
            to,
        });
    }
}

fn values<'p>(properties: &'p [Property<'_>]) -> Vec<(&'p str, &'p str)> {
    let properties = properties.iter();
    properties.map(|it| (&*it.kind, it.value())).collect()
}

/// Documents by custom schema, in walk order.
fn schemas(documents: &[Document]) -> BTreeMap<&str, Vec<&str>> {
    let mut schemas: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for document in documents.iter().filter(|it| !is_core(&it.schema)) {
        let schema = schemas.entry(&document.schema).or_default();
        schema.push(&document.json);
    }
    schemas
}

/// One line for terminals.
impl fmt::Display for CatalogChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            ChangeKind::Added => "+",
            ChangeKind::Removed => "-",
            _ => "~",
        })?;
        if !self.package.is_empty() {
            write!(f, " package {}", self.package)?;
        }
        match &self.subject {
            Some(Subject::Channel(name)) => write!(f, " channel {name}")?,
            Some(Subject::Bundle(name)) => write!(f, " bundle {name}")?,
            Some(Subject::Schema(name)) => write!(f, " schema {name}")?,
            None => {}
        }
        f.write_str(match self.kind {
            ChangeKind::Added | ChangeKind::Removed => return Ok(()),
            ChangeKind::DefaultChannel => ": default channel",
            ChangeKind::Head => ": head",
            ChangeKind::Deprecation => ": deprecation",
            ChangeKind::Image => ": image",
            ChangeKind::Upgrades => return f.write_str(": other upgrades"),
            ChangeKind::Content => return f.write_str(": other content"),
        })?;
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
        write!(f, " {} -> {}", shown(&self.from), shown(&self.to))
    }
}
