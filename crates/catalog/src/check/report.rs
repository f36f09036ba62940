//! What was found so far.

use crate::{CatalogProblem, CatalogProblems, DocumentOrigin, Rule};

/// The problems of one package.
pub(crate) struct ProblemReport<'a> {
    package: &'a str,
    problems: Vec<CatalogProblem>,
    /// What older versions of opm accept; absent where every rule counts.
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

    /// One in which rules that older versions of opm did not have are warnings.
    pub(crate) fn lenient(package: &'a str) -> Self {
        Self {
            warnings: Some(Vec::new()),
            ..Self::new(package)
        }
    }

    /// Whether such rules are warnings.
    pub(crate) fn is_lenient(&self) -> bool {
        self.warnings.is_some()
    }

    /// Of the package.
    pub(crate) fn package(&self) -> &'a str {
        self.package
    }

    pub(crate) fn add(&mut self, rule: Rule, origin: &DocumentOrigin, text: impl Into<String>) {
        let problem = self.problem(rule, origin, text.into());
        self.problems.push(problem);
    }

    /// A warning, or a problem where every rule counts.
    pub(crate) fn warn(&mut self, rule: Rule, origin: &DocumentOrigin, text: impl Into<String>) {
        let problem = self.problem(rule, origin, text.into());
        let found = self.warnings.as_mut().unwrap_or(&mut self.problems);
        found.push(problem);
    }

    /// The warnings so far.
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

    /// Errors: all that was found, in the order of the files.
    pub(crate) fn into_result(mut self) -> Result<(), CatalogProblems> {
        if self.problems.is_empty() {
            return Ok(());
        }
        self.problems.sort_by(|a, b| a.origin.cmp(&b.origin));
        Err(CatalogProblems(self.problems))
    }
}
