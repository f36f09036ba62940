//! Collects validation errors.

use crate::{CatalogProblem, CatalogProblems, DocumentOrigin, Rule};

/// Validation errors and warnings of one package.
pub(crate) struct ProblemReport<'a> {
    package: &'a str,
    problems: Vec<CatalogProblem>,
    /// Rules that older versions of opm lack; `None` when all rules are errors.
    warnings: Option<Vec<CatalogProblem>>,
}

impl<'a> ProblemReport<'a> {
    pub(crate) fn new(package: &'a str) -> Self {
        Self {
            package,
            problems: Vec::new(),
            warnings: None,
        }
    }

    /// A report in which rules that older versions of opm lack are warnings.
    pub(crate) fn lenient(package: &'a str) -> Self {
        Self {
            warnings: Some(Vec::new()),
            ..Self::new(package)
        }
    }

    /// Whether rules that older versions of opm lack are warnings.
    pub(crate) fn is_lenient(&self) -> bool {
        self.warnings.is_some()
    }

    /// Name of the package.
    pub(crate) fn package(&self) -> &'a str {
        self.package
    }

    pub(crate) fn add(&mut self, rule: Rule, origin: &DocumentOrigin, text: impl Into<String>) {
        let problem = self.problem(rule, origin, text.into());
        self.problems.push(problem);
    }

    /// Adds a warning; an error in a strict report.
    pub(crate) fn warn(&mut self, rule: Rule, origin: &DocumentOrigin, text: impl Into<String>) {
        let problem = self.problem(rule, origin, text.into());
        let found = self.warnings.as_mut().unwrap_or(&mut self.problems);
        found.push(problem);
    }

    /// Takes the warnings collected so far.
    pub(crate) fn take_warnings(&mut self) -> CatalogProblems {
        let found = self.warnings.as_mut().map(std::mem::take);
        CatalogProblems(found.unwrap_or_default())
    }

    fn problem(&self, rule: Rule, origin: &DocumentOrigin, text: String) -> CatalogProblem {
        CatalogProblem {
            origin: Some(origin.clone()),
            package: self.package.to_owned(),
            rule,
            text,
        }
    }

    /// Errors: all errors, in walk order.
    pub(crate) fn into_result(mut self) -> Result<(), CatalogProblems> {
        if self.problems.is_empty() {
            return Ok(());
        }
        self.problems.sort_by(|a, b| a.origin.cmp(&b.origin));
        Err(CatalogProblems(self.problems))
    }
}
