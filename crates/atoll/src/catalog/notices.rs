//! Notices about packages that break rules.

use ::catalog::cache::CatalogCache;
use ::catalog::{Advice, CatalogProblems};

/// Packages and unread documents that are listed; `atoll catalog validate` lists all.
const LISTED: usize = 20;

/// A line for each package that is not served or that younger versions of opm refuse, and for each unread document and
/// template.
pub(super) fn of(cache: &CatalogCache) -> Vec<String> {
    let report = cache.report();
    let not_served = report.not_served();
    let refused = not_served.iter().map(|(name, problems)| {
        let first = first(problems);
        let consequence = if report.partial.contains_key(*name) {
            "has broken bundles and is not served"
        } else {
            "is left out"
        };
        match *name {
            "" => format!("documents of packages without a name: {first}"),
            name => format!("package {name} {consequence}: {first}"),
        }
    });
    let warned = report.warned.iter();
    let warned = warned.filter(|(name, _)| !not_served.contains_key(name.as_str()));
    let warned = warned.map(|(name, problems)| {
        let (since, first) = (problems.since().unwrap_or_default(), first(problems));
        format!("package {name} is refused by opm from {since} on: {first}")
    });
    let unread = report.unread.0.iter();
    let unread = unread.map(|problem| format!("not read: {problem}"));
    let templates = Advice::of_templates(cache).into_iter();
    let templates = templates.map(|advice| advice.to_string());
    let all: Vec<String> = unread
        .chain(refused)
        .chain(warned)
        .chain(templates)
        .collect();
    let more = all.len().saturating_sub(LISTED);
    let mut listed: Vec<String> = all.into_iter().take(LISTED).collect();
    if more > 0 {
        listed.push(format!("{more} more: `atoll catalog validate` lists all"));
    }
    listed
}

/// The first problem, and the number of the others.
fn first(problems: &CatalogProblems) -> String {
    let more = problems.0.len().saturating_sub(1);
    match problems.0.first() {
        Some(first) if more > 0 => format!("{first}; and {more} more problems"),
        Some(first) => first.to_string(),
        None => String::new(),
    }
}
