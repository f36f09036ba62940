//! Documents of one package, decoded and indexed by name.

use std::collections::BTreeMap;

use crate::check::{ProblemReport, check_custom};
use crate::schema::decode::decode;
use crate::schema::{
    BUNDLE, BundleDocument, CHANNEL, ChannelDocument, DEPRECATIONS, DeprecationsDocument, PACKAGE,
    PackageDocument,
};
use crate::{Document, DocumentOrigin, Rule};

/// A decoded document. Without content it could not be decoded, which is reported; its name is known.
pub(super) struct TypedDocument<'a, T> {
    pub(super) origin: &'a DocumentOrigin,
    pub(super) content: Option<T>,
}

type Named<'a, T> = BTreeMap<&'a str, TypedDocument<'a, T>>;

/// First document of each name; duplicates are reported.
#[derive(Default)]
pub(super) struct Documents<'a> {
    pub(super) package: Option<TypedDocument<'a, PackageDocument<'a>>>,
    pub(super) channels: Named<'a, ChannelDocument<'a>>,
    pub(super) bundles: Named<'a, BundleDocument<'a>>,
    pub(super) deprecations: Option<TypedDocument<'a, DeprecationsDocument<'a>>>,
}

impl<'a> Documents<'a> {
    pub(super) fn read(documents: &'a [Document], report: &mut ProblemReport<'a>) -> Self {
        let is_known = documents.iter().any(|document| document.schema == PACKAGE);
        let mut read = Self::default();
        let mut deprecations = 0;
        for document in documents {
            match document.schema.as_str() {
                PACKAGE => read.package(document, report),
                CHANNEL => read.channel(document, is_known, report),
                BUNDLE => read.bundle(document, is_known, report),
                DEPRECATIONS => {
                    read.deprecations(document, deprecations, is_known, report);
                    deprecations += 1;
                }
                _ => check_custom(document, report),
            }
        }
        read
    }

    fn package(&mut self, document: &'a Document, report: &mut ProblemReport<'a>) {
        let (name, origin) = (&document.name, &document.origin);
        let content = typed(document, "package", Rule::Members, report);
        if let Some(first) = &self.package {
            let text = format!(
                "duplicate package {name:?}: the first is at {}",
                first.origin
            );
            report.add(Rule::PackageUnique, origin, text);
        } else {
            self.package = Some(TypedDocument { origin, content });
        }
    }

    fn channel(&mut self, document: &'a Document, is_known: bool, report: &mut ProblemReport<'a>) {
        let Document {
            name,
            package,
            origin,
            ..
        } = document;
        let content = typed(document, "channel", Rule::Members, report);
        if !is_known {
            let text = format!("unknown package {package:?} for channel {name:?}");
            report.add(Rule::ChannelPackage, origin, text);
        }
        if name.is_empty() {
            let text = format!("package {package:?} contains channel with no name");
            report.add(Rule::ChannelNamed, origin, text);
        } else if let Some(first) = self.channels.get(name.as_str()) {
            let text = format!(
                "package {package:?} has duplicate channel {name:?}: the first is at {}",
                first.origin
            );
            report.add(Rule::ChannelUnique, origin, text);
            return;
        }
        self.channels
            .insert(name, TypedDocument { origin, content });
    }

    fn bundle(&mut self, document: &'a Document, is_known: bool, report: &mut ProblemReport<'a>) {
        let Document {
            name,
            package,
            origin,
            ..
        } = document;
        let content = decode(&document.json).map_err(|e| {
            let text = format!("parse bundle {name:?}: {e}");
            report.add_of_bundle(name, Rule::Members, origin, text);
        });
        let content = content.ok();
        if package.is_empty() {
            let text = format!("package name must be set for bundle {name:?}");
            report.add(Rule::BundlePackage, origin, text);
        } else if !is_known {
            let text = format!("unknown package {package:?} for bundle {name:?}");
            report.add(Rule::BundlePackageKnown, origin, text);
        }
        if name.is_empty() {
            let text = format!("invalid bundle \"\" of package {package:?}: name must be set");
            report.add_of_bundle(name, Rule::BundleNamed, origin, text);
        } else if let Some(first) = self.bundles.get(name.as_str()) {
            let text = format!(
                "package {package:?} has duplicate bundle {name:?}: the first is at {}",
                first.origin
            );
            report.add_of_bundle(name, Rule::BundleUnique, origin, text);
            return;
        }
        self.bundles.insert(name, TypedDocument { origin, content });
    }

    fn deprecations(
        &mut self,
        document: &'a Document,
        index: usize,
        is_known: bool,
        report: &mut ProblemReport<'a>,
    ) {
        let Document {
            package, origin, ..
        } = document;
        let content = typed(document, "deprecation", Rule::DeprecationsMembers, report);
        if package.is_empty() {
            let text = format!("package name must be set for deprecation item {index}");
            report.add(Rule::DeprecationsPackage, origin, text);
        } else if !is_known {
            let text = format!("cannot apply deprecations to an unknown package {package:?}");
            report.add(Rule::DeprecationsPackageKnown, origin, text);
        }
        if let Some(first) = &self.deprecations {
            let text = format!(
                "expected a maximum of one deprecation per package: {package:?}: the first is at {}",
                first.origin
            );
            report.add(Rule::DeprecationsUnique, origin, text);
        } else {
            self.deprecations = Some(TypedDocument { origin, content });
        }
    }
}

fn typed<'a, T: serde::Deserialize<'a>>(
    document: &'a Document,
    what: &str,
    rule: Rule,
    report: &mut ProblemReport<'a>,
) -> Option<T> {
    decode(&document.json)
        .map_err(|e| {
            let text = format!("parse {what} {:?}: {e}", document.name);
            report.add(rule, &document.origin, text);
        })
        .ok()
}
