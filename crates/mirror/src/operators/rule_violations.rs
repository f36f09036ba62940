//! Packages that break rules of catalogs, and the consequence for a run.
//!
//! A catalog belongs to its maker, and older versions of opm serve packages that newer ones refuse. So only selected
//! packages count: one that no version of opm serves ends the run, one that older versions serve is mirrored with a
//! warning, and all others are skipped.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use catalog::CatalogProblems;
use catalog::cache::{BuildReport, CatalogCache};
use model::Error;
use model::image_set::OperatorSelection;

use super::choice::Choice;
use super::dependencies;

const REMEDY: &str = "take another version of the catalog, or leave the package out of the set; `atoll catalog validate` lists everything that its maker has to correct";
const REMEDY_OF_WARNED: &str = "nothing has to be done as long as the catalog is served by the opm of its own image; opm from 1.58 on does not serve it before its maker lets `replaces` name an entry that none skips";

/// Refuses selected packages that no version of opm serves.
///
/// Errors: Invalid – packages with the rules that they break, all at once.
pub(crate) fn refuse_selected(
    judged: &BuildReport,
    operator: &OperatorSelection,
) -> Result<(), Error> {
    let is_all = operator.packages.is_empty();
    let is_selected = |name: &str| is_all || operator.packages.iter().any(|it| it.name == name);
    let mut text = String::new();
    for (name, problems) in &judged.refused {
        if is_selected(name) {
            describe(&mut text, name, "cannot be mirrored", problems, REMEDY);
        }
    }
    // The package of unread documents is unknown: where all packages are selected, some would be missing.
    if is_all && text.is_empty() && !judged.unread.0.is_empty() {
        text = unread(&judged.unread);
    }
    refuse(operator, text)
}

/// Refuses required packages that no version of opm serves.
///
/// Errors: Invalid – such packages; those of the cache.
pub(crate) fn refuse_required(
    cache: &Arc<CatalogCache>,
    judged: &BuildReport,
    operator: &OperatorSelection,
    choice: &Choice,
) -> Result<(), Error> {
    if operator.skip_dependencies || judged.refused.is_empty() {
        return Ok(());
    }
    let mut text = String::new();
    for (name, by) in dependencies::required_packages(cache, choice)? {
        if let Some(problems) = judged.refused.get(&name) {
            let what = format!("is required by {by} and cannot be mirrored");
            describe(&mut text, &name, &what, problems, REMEDY);
        }
    }
    refuse(operator, text)
}

/// Refuses a catalog of which every package has to be known.
///
/// Errors: Invalid – everything that cannot be read.
pub(crate) fn refuse_any(judged: &BuildReport, catalog: &str) -> Result<(), Error> {
    let whole = OperatorSelection {
        catalog: catalog.to_owned(),
        ..OperatorSelection::default()
    };
    refuse_selected(judged, &whole)
}

/// Possible cause of an unknown package, as the end of a sentence.
pub(crate) fn hint(judged: &BuildReport) -> String {
    if judged.unread.0.is_empty() {
        return String::new();
    }
    format!("; {}", unread(&judged.unread))
}

/// Warnings for a run with `choice`.
pub(crate) fn notes(catalog: &str, judged: &BuildReport, choice: &Choice) -> Vec<String> {
    let warned = judged.warned.keys().filter(|it| choice.contains_key(*it));
    let mut notes: Vec<_> = warned
        .map(|name| {
            format!("{catalog}: package {name} is mirrored unchanged, though opm from 1.58 on refuses it (--why-refused names the rule)")
        })
        .collect();
    if !judged.refused.is_empty() {
        let names: Vec<_> = judged.refused.keys().map(String::as_str).collect();
        let names = names.join(", ");
        notes.push(format!(
            "{catalog}: packages that break rules are skipped (--why-refused names the rules): {names}"
        ));
    }
    if !judged.unread.0.is_empty() {
        notes.push(format!("{catalog}: {}", unread(&judged.unread)));
    }
    notes
}

/// Each package that breaks rules: the rules with their entries, the consequence, and the remedy.
pub(crate) fn explanations(catalog: &str, judged: &BuildReport) -> Vec<String> {
    let of = |packages: &BTreeMap<String, CatalogProblems>, what: &str, remedy: &str| {
        let described = packages.iter().map(|(name, problems)| {
            let mut text = format!("{catalog}: ");
            describe(&mut text, name, what, problems, remedy);
            text
        });
        described.collect::<Vec<_>>()
    };
    let mut explanations = of(&judged.refused, "cannot be mirrored", REMEDY);
    explanations.extend(of(
        &judged.warned,
        "is mirrored with a warning",
        REMEDY_OF_WARNED,
    ));
    explanations
}

fn describe(text: &mut String, name: &str, what: &str, problems: &CatalogProblems, remedy: &str) {
    let newline = if text.is_empty() || text.ends_with(": ") {
        ""
    } else {
        "\n"
    };
    let problems = problems.to_string().replace('\n', "\n  ");
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "{newline}package {name} {what}, since it breaks rules of catalogs:\n  {problems}\n  remedy: {remedy}"
    );
}

fn unread(problems: &CatalogProblems) -> String {
    let problems = problems.to_string().replace('\n', "\n  ");
    format!("documents that cannot be read, so that it is not known whose they are:\n  {problems}")
}

fn refuse(operator: &OperatorSelection, text: String) -> Result<(), Error> {
    if text.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(operator.catalog.clone(), text))
}
