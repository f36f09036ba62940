//! What was found so far.

use crate::{Origin, Problem, Problems, Rule};

/// The problems of one package.
pub(crate) struct Report<'a> {
    package: &'a str,
    problems: Vec<Problem>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(package: &'a str) -> Self {
        let problems = Vec::new();
        Self { package, problems }
    }

    /// Of the package.
    pub(crate) fn package(&self) -> &'a str {
        self.package
    }

    pub(crate) fn add(&mut self, rule: Rule, origin: &Origin, text: impl Into<String>) {
        self.problems.push(Problem {
            origin: Some(origin.clone()),
            package: self.package.to_owned(),
            rule,
            text: text.into(),
        });
    }

    /// Errors: all that was found, in the order of the files.
    pub(crate) fn into_result(mut self) -> Result<(), Problems> {
        if self.problems.is_empty() {
            return Ok(());
        }
        self.problems.sort_by(|a, b| a.origin.cmp(&b.origin));
        Err(Problems(self.problems))
    }
}
