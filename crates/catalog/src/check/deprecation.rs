//! Validation of deprecations.

use std::collections::HashSet;

use super::ProblemReport;
use crate::schema::{BUNDLE, CHANNEL, DeprecationEntry, DeprecationsDocument, PACKAGE, Reference};
use crate::{DocumentOrigin, Rule};

/// Channels and bundles that can be deprecated.
pub(crate) struct Targets<'a> {
    pub(crate) channels: HashSet<&'a str>,
    pub(crate) bundles: HashSet<&'a str>,
}

/// Checks the entries of `olm.deprecations`, and returns the valid ones: a bundle is served without a malformed
/// deprecation. Source: `alpha/declcfg/declcfg_to_model.go`.
pub(crate) fn valid_deprecations<'a>(
    document: DeprecationsDocument<'a>,
    targets: &Targets<'_>,
    origin: &DocumentOrigin,
    report: &mut ProblemReport<'_>,
) -> Vec<DeprecationEntry<'a>> {
    let package = report.package();
    let mut seen = HashSet::new();
    let mut valid = Vec::new();
    for (index, entry) in document.entries.into_iter().enumerate() {
        let mut is_valid = true;
        let mut wrong = |rule, text| {
            report.add(rule, origin, text);
            is_valid = false;
        };
        if let Err((rule, text)) = check(&entry.reference, index, targets, package) {
            wrong(rule, text);
        } else if !seen.insert(entry.reference.clone()) {
            let Reference { schema, name } = &entry.reference;
            let text = format!(
                "duplicate deprecation entry [{index}] {schema:?} {name:?} for package {package:?}"
            );
            wrong(Rule::DeprecationUnique, text);
        }
        if entry.message.is_empty() {
            let text = format!("invalid deprecation: message must be set in entry [{index}]");
            wrong(Rule::DeprecationMessage, text);
        }
        valid.extend(is_valid.then_some(entry));
    }
    valid
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
