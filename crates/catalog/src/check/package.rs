//! Validation across the bundles of a package.

use std::collections::{BTreeMap, BTreeSet};

use super::ProblemReport;
use crate::content::Bundle;
use crate::{DocumentOrigin, Rule};

/// Checks that versions are unique; build metadata counts as different. Source: `alpha/model/model.go`.
pub(crate) fn check_versions<'a>(
    bundles: impl Iterator<Item = &'a Bundle<'a>>,
    origin: &DocumentOrigin,
    report: &mut ProblemReport<'_>,
) {
    let mut versions: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for bundle in bundles {
        versions
            .entry(bundle.full_version())
            .or_default()
            .insert(bundle.name);
    }
    let twice: Vec<String> = versions
        .into_iter()
        .filter(|(_, names)| names.len() > 1)
        .map(|(version, names)| {
            let names: Vec<&str> = names.into_iter().collect();
            format!("{{{version}: [{}]}}", names.join(", "))
        })
        .collect();
    if !twice.is_empty() {
        let text = format!("duplicate versions found in bundles: [{}]", twice.join(" "));
        report.add(Rule::UniqueVersions, origin, text);
    }
}
