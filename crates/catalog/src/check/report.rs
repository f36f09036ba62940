//! Collects validation errors.

use std::collections::BTreeSet;

use crate::{CatalogProblem, CatalogProblems, DocumentOrigin, Rule};

/// Most errors, and most warnings, of a package: bounds the memory that a malformed catalog takes.
const MAX_PROBLEMS: usize = 10_000;

/// Validation errors and warnings of one package. Rules that older versions of opm lack give warnings.
pub(crate) struct ProblemReport<'a> {
    package: &'a str,
    errors: Vec<CatalogProblem>,
    warnings: Vec<CatalogProblem>,
    broken: BTreeSet<String>,
    /// Whether an error concerns more than single bundles.
    is_refused: bool,
}

/// The result of validating a package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackageProblems {
    /// Broken rules of all versions of opm, in walk order.
    pub errors: CatalogProblems,
    /// Broken rules that older versions of opm lack, in walk order.
    pub warnings: CatalogProblems,
    /// Bundles that no version of opm serves. Where they explain all errors, the other bundles can be selected.
    pub broken: BTreeSet<String>,
    /// Whether an error concerns more than single bundles.
    pub is_refused: bool,
}

impl<'a> ProblemReport<'a> {
    pub(crate) fn new(package: &'a str) -> Self {
        Self {
            package,
            errors: Vec::new(),
            warnings: Vec::new(),
            broken: BTreeSet::new(),
            is_refused: false,
        }
    }

    /// Name of the package.
    pub(crate) fn package(&self) -> &'a str {
        self.package
    }

    /// Adds a broken rule of the package.
    pub(crate) fn add(&mut self, rule: Rule, origin: &DocumentOrigin, text: impl Into<String>) {
        if rule.since().is_some() {
            let problem = self.problem(rule, origin, text.into());
            push(&mut self.warnings, problem);
        } else {
            self.refuse(rule, origin, text);
        }
    }

    /// Adds a broken rule of a bundle.
    pub(crate) fn add_of_bundle(
        &mut self,
        bundle: &str,
        rule: Rule,
        origin: &DocumentOrigin,
        text: impl Into<String>,
    ) {
        if rule.since().is_some() {
            return self.add(rule, origin, text);
        }
        self.broken.insert(bundle.to_owned());
        let problem = self.problem(rule, origin, text.into());
        push(&mut self.errors, problem);
    }

    /// Adds an error, also of a rule that older versions of opm have in another form.
    pub(crate) fn refuse(&mut self, rule: Rule, origin: &DocumentOrigin, text: impl Into<String>) {
        self.is_refused = true;
        let problem = self.problem(rule, origin, text.into());
        push(&mut self.errors, problem);
    }

    fn problem(&self, rule: Rule, origin: &DocumentOrigin, text: String) -> CatalogProblem {
        CatalogProblem {
            origin: Some(origin.clone()),
            package: self.package.to_owned(),
            rule,
            text,
        }
    }

    pub(crate) fn finish(self) -> PackageProblems {
        let sorted = |mut problems: Vec<CatalogProblem>| {
            problems.sort_by(|a, b| a.origin.cmp(&b.origin));
            CatalogProblems(problems)
        };
        PackageProblems {
            errors: sorted(self.errors),
            warnings: sorted(self.warnings),
            broken: self.broken,
            is_refused: self.is_refused,
        }
    }
}

fn push(problems: &mut Vec<CatalogProblem>, problem: CatalogProblem) {
    if problems.len() < MAX_PROBLEMS {
        problems.push(problem);
    }
}
