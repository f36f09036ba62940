//! Validation of deprecations.

use std::collections::HashSet;

use super::ProblemReport;
use crate::schema::{BUNDLE, CHANNEL, DeprecationsDocument, PACKAGE, Reference};
use crate::{DocumentOrigin, Rule};

/// Channels and bundles that can be deprecated.
pub(crate) struct Targets<'a> {
    pub(crate) channels: HashSet<&'a str>,
    pub(crate) bundles: HashSet<&'a str>,
}

/// Checks the entries of `olm.deprecations`. Source: `alpha/declcfg/declcfg_to_model.go`.
pub(crate) fn check_deprecations(
    document: &DeprecationsDocument<'_>,
    targets: &Targets<'_>,
    origin: &DocumentOrigin,
    report: &mut ProblemReport<'_>,
) {
    let mut seen = HashSet::new();
    for (index, entry) in document.entries.iter().enumerate() {
        if let Err((rule, text)) = check(&entry.reference, index, targets, report.package()) {
            report.add(rule, origin, text);
        } else if !seen.insert(&entry.reference) {
            let Reference { schema, name } = &entry.reference;
            let text = format!(
                "duplicate deprecation entry [{index}] {schema:?} {name:?} for package {:?}",
                report.package()
            );
            report.add(Rule::DeprecationUnique, origin, text);
        }
        if entry.message.is_empty() {
            let text = format!("invalid deprecation: message must be set in entry [{index}]");
            report.add(Rule::DeprecationMessage, origin, text);
        }
    }
}

fn check(
    reference: &Reference<'_>,
    index: usize,
    targets: &Targets<'_>,
    package: &str,
) -> Result<(), (Rule, String)> {
    let name = &*reference.name;
    match &*reference.schema {
        "" => Err((
            Rule::DeprecationSchema,
            format!("schema must be set for deprecation entry [{index}] for package {package:?}"),
        )),
        BUNDLE if !targets.bundles.contains(name) => Err((
            Rule::DeprecationTarget,
            format!("cannot deprecate bundle {name:?} for package {package:?}: bundle not found"),
        )),
        CHANNEL if !targets.channels.contains(name) => Err((
            Rule::DeprecationTarget,
            format!("cannot deprecate channel {name:?} for package {package:?}: channel not found"),
        )),
        PACKAGE if !name.is_empty() => Err((
            Rule::DeprecationPackageName,
            format!(
                "package name must be empty for deprecated package {package:?} (specified {name:?})"
            ),
        )),
        BUNDLE | CHANNEL | PACKAGE => Ok(()),
        schema => Err((
            Rule::DeprecationSchema,
            format!(
                "cannot deprecate object {schema:?} {name:?} referenced by entry {index} for package {package:?}: object schema unknown"
            ),
        )),
    }
}
