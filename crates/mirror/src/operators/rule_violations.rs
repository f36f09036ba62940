//! Packages that break rules of catalogs, and the consequence for a run.
//!
//! A catalog belongs to its maker, and older versions of opm serve packages that newer ones refuse. So only selected
//! packages count: one that no version of opm serves is not mirrored, one that older versions serve is mirrored with a
//! warning, and all others are skipped. Of a package, only selected bundles count.

use std::fmt::Write as _;
use std::sync::Arc;

use catalog::cache::{BuildReport, CatalogCache};
use catalog::{Advice, CatalogProblem, CatalogProblems};
use model::Error;
use model::image_set::OperatorSelection;

use super::choice::Choice;
use super::dependencies;
use crate::mistakes::Mistakes;

const REMEDY: &str = "take another version of the catalog, or leave the package out of the set; `atoll catalog validate` lists everything that its maker has to correct";
const REMEDY_OF_PARTIAL: &str = "select other versions of the package; `atoll catalog validate` lists everything that its maker has to correct";
/// Problems listed for a package; `atoll catalog validate` lists all.
const LISTED: usize = 20;

/// The error for a selected package that no version of opm serves.
pub(super) fn refused(
    operator: &OperatorSelection,
    name: &str,
    problems: &CatalogProblems,
) -> Error {
    let text = describe(name, "cannot be mirrored", problems, REMEDY);
    Error::invalid(operator.catalog.clone(), text)
}

/// The error for a package of which selected bundles break rules.
pub(super) fn refused_bundles(
    operator: &OperatorSelection,
    name: &str,
    bundles: &[String],
    problems: &CatalogProblems,
) -> Error {
    let bundles = bundles.join(", ");
    let what = format!("cannot be mirrored with {bundles}");
    let text = describe(name, &what, problems, REMEDY_OF_PARTIAL);
    Error::invalid(operator.catalog.clone(), text)
}

/// The errors for required packages that no version of opm serves.
///
/// Errors: those of the cache.
pub(super) fn refused_required(
    cache: &Arc<CatalogCache>,
    operator: &OperatorSelection,
    choice: &Choice,
) -> Result<Vec<Error>, Error> {
    let report = cache.report();
    if report.refused.is_empty() {
        return Ok(Vec::new());
    }
    let required = dependencies::required_packages(cache, choice)?.into_iter();
    let refused = required.filter_map(|(name, by)| {
        let problems = report.refused.get(&name)?;
        let what = format!("is required by {by} and cannot be mirrored");
        let text = describe(&name, &what, problems, REMEDY);
        Some(Error::invalid(operator.catalog.clone(), text))
    });
    Ok(refused.collect())
}

/// The error for unread documents where all packages are selected: some may be missing. None beside `others`, which name
/// them.
pub(super) fn unread_of_all(
    cache: &CatalogCache,
    operator: &OperatorSelection,
    others: &[Error],
) -> Option<Error> {
    let unread = unread(cache.report());
    let is_all = operator.packages.is_empty() && others.is_empty();
    (is_all && !unread.is_empty()).then(|| Error::invalid(operator.catalog.clone(), unread))
}

/// Errors: Invalid – all of these at once.
pub(crate) fn refuse(operator: &OperatorSelection, refused: &[Error]) -> Result<(), Error> {
    let mut mistakes = Mistakes::default();
    for error in refused {
        let reason = match error {
            Error::Invalid { reason, .. } => reason.clone(),
            other => other.chain(),
        };
        mistakes.note::<()>(Err(Error::invalid(operator.catalog.clone(), reason)))?;
    }
    mistakes.none(&operator.catalog)
}

/// Possible cause of an unknown package, as the end of a sentence.
pub(super) fn hint(report: &BuildReport) -> String {
    let unread = unread(report);
    if unread.is_empty() {
        return unread;
    }
    format!("; {unread}")
}

/// Warnings for a run with `choice`.
pub(crate) fn notes(catalog: &str, cache: &CatalogCache, choice: &Choice) -> Vec<String> {
    let report = cache.report();
    let is_chosen = |name: &str| choice.contains_key(name);
    let mut notes = Vec::new();
    for (name, problems) in &report.warned {
        if let Some(since) = problems.since().filter(|_| is_chosen(name)) {
            notes.push(format!(
                "{catalog}: package {name} has entries that opm from {since} on refuses; those that are selected are mirrored unchanged (--why-refused names the rule)"
            ));
        }
    }
    for name in report.partial.keys().filter(|name| is_chosen(name)) {
        notes.push(format!(
            "{catalog}: package {name} is mirrored without bundles that break rules (--why-refused names the rules)"
        ));
    }
    let skipped = report.not_served().into_keys();
    let skipped: Vec<_> = skipped.filter(|name| !is_chosen(name)).collect();
    if !skipped.is_empty() {
        let names = skipped.join(", ");
        notes.push(format!(
            "{catalog}: packages that break rules are skipped (--why-refused names the rules): {names}"
        ));
    }
    let unread = unread(report);
    if !unread.is_empty() {
        notes.push(format!("{catalog}: {unread}"));
    }
    let templates = Advice::of_templates(cache).into_iter().take(LISTED);
    notes.extend(templates.map(|advice| format!("{catalog}: {advice}")));
    notes
}

/// Each package that breaks rules: the rules with their entries, the consequence, and the remedy.
pub(crate) fn explanations(catalog: &str, report: &BuildReport) -> Vec<String> {
    let explain = |name: &str, what: &str, problems: &CatalogProblems, remedy: &str| {
        let text = describe(name, what, problems, remedy);
        format!("{catalog}: {text}")
    };
    let refused = report.refused.iter();
    let refused = refused.map(|(name, it)| explain(name, "cannot be mirrored", it, REMEDY));
    let partial = report.partial.iter().map(|(name, problems)| {
        let what = "is mirrored without some bundles";
        explain(name, what, problems, REMEDY_OF_PARTIAL)
    });
    let warned = report.warned.iter().map(|(name, problems)| {
        let since = problems.since().unwrap_or_default();
        let remedy = format!(
            "nothing has to be done as long as the catalog is served by the opm of its own image; opm from {since} on does not serve it before its maker corrects it"
        );
        explain(name, "is mirrored with a warning", problems, &remedy)
    });
    refused.chain(partial).chain(warned).collect()
}

fn describe(name: &str, what: &str, problems: &CatalogProblems, remedy: &str) -> String {
    let problems = listed(&problems.0.iter().collect::<Vec<_>>());
    format!(
        "package {name} {what}, since it breaks rules of catalogs:{problems}\n  remedy: {remedy}"
    )
}

/// The unread documents; empty without any. Custom documents are not missed.
fn unread(report: &BuildReport) -> String {
    let unread = report.unread.0.iter();
    let unread: Vec<_> = unread.filter(|it| it.rule.since().is_none()).collect();
    if unread.is_empty() {
        return String::new();
    }
    let problems = listed(&unread);
    format!("documents that cannot be read, so that it is not known whose they are:{problems}")
}

/// One line for each problem.
fn listed(problems: &[&CatalogProblem]) -> String {
    let mut text = String::new();
    for problem in problems.iter().take(LISTED) {
        // Writing to a string does not fail.
        let _ = write!(text, "\n  {problem}");
    }
    if problems.len() > LISTED {
        let _ = write!(text, "\n  and {} more", problems.len() - LISTED);
    }
    text
}
