//! Errors of settings, reported together.

use std::fmt;

/// One variable that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Upper-case name of the variable.
    pub variable: String,
    /// Reason and expected format.
    pub reason: String,
}

impl Problem {
    /// `variable` cannot be used because of `reason`.
    pub fn new(variable: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            variable: variable.into(),
            reason: reason.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.variable, self.reason)
    }
}

/// All problems of the settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// Adds those of variables that are not reported yet: one that does not parse has further problems.
    pub(crate) fn add(&mut self, further: Vec<Problem>) {
        let is_new = |problem: &Problem| self.0.iter().all(|one| one.variable != problem.variable);
        let further: Vec<_> = further.into_iter().filter(is_new).collect();
        self.0.extend(further);
    }

    /// Errors: itself, unless it is empty.
    pub(crate) fn none(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            1 => writeln!(f, "one setting cannot be used:")?,
            n => writeln!(f, "{n} settings cannot be used:")?,
        }
        for problem in &self.0 {
            writeln!(f, "  {problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
