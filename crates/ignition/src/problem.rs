//! Problems of a configuration, all of them, in the order of the text.

use std::collections::HashSet;
use std::fmt;

use located_yaml::Position;

use crate::Error;

/// Problems reported for one configuration; more are counted.
pub const MAX_PROBLEMS: usize = 1000;

/// Characters of a name or value that a message repeats.
const MAX_QUOTED: usize = 80;

/// The consequence of a problem when Ignition runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProblemClass {
    /// Ignition refuses the configuration: the host does not boot.
    Refused,
    /// Ignition ignores the member without a word.
    Ignored,
    /// Ignition accepts it, though its effect is hardly the wanted one.
    Doubtful,
}

/// A problem.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IgnitionProblem {
    /// Position in the text.
    pub at: Position,
    /// Path of the member, as in `storage.files[0].mode`; empty for the whole document.
    pub path: String,
    /// Its consequence.
    pub class: ProblemClass,
    /// The problem, and an acceptable value.
    pub reason: String,
}

impl IgnitionProblem {
    /// Path and reason.
    pub fn without_position(&self) -> String {
        match self.path.as_str() {
            "" => self.reason.clone(),
            path => format!("{path}: {}", self.reason),
        }
    }
}

impl fmt::Display for IgnitionProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.without_position())
    }
}

impl From<&IgnitionProblem> for Error {
    fn from(problem: &IgnitionProblem) -> Self {
        let reason = problem.reason.clone();
        match problem.path.as_str() {
            "" => Self::Syntax {
                at: problem.at,
                reason,
            },
            path => Self::Invalid {
                at: path.to_owned(),
                reason,
            },
        }
    }
}

/// Problems of one configuration, sorted by position.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProblemList {
    problems: Vec<IgnitionProblem>,
    uncounted: usize,
    is_refused: bool,
}

impl ProblemList {
    /// The problems, at most [`MAX_PROBLEMS`].
    pub fn as_slice(&self) -> &[IgnitionProblem] {
        &self.problems
    }

    /// The number of problems that are not listed.
    pub fn omitted(&self) -> usize {
        self.uncounted
    }

    /// Whether Ignition refuses the configuration.
    pub fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// The first problem of one of the classes.
    pub fn first(&self, classes: &[ProblemClass]) -> Option<&IgnitionProblem> {
        self.problems
            .iter()
            .find(|problem| classes.contains(&problem.class))
    }

    /// Errors: the first problem for which Ignition would refuse or ignore some of the configuration.
    pub(crate) fn accept(&self) -> Result<(), Error> {
        match self.first(&[ProblemClass::Refused, ProblemClass::Ignored]) {
            Some(problem) => Err(Error::from(problem)),
            None => Ok(()),
        }
    }

    pub(crate) fn add(
        &mut self,
        class: ProblemClass,
        at: Position,
        path: impl fmt::Display,
        reason: impl Into<String>,
    ) {
        self.is_refused |= class == ProblemClass::Refused;
        if self.problems.len() == MAX_PROBLEMS {
            self.uncounted += 1;
            return;
        }
        self.problems.push(IgnitionProblem {
            at,
            path: path.to_string(),
            class,
            reason: reason.into(),
        });
    }

    /// Sorts by position. A doubt about a member that is refused anyway is dropped.
    pub(crate) fn finish(mut self) -> Self {
        let refused: HashSet<String> = self
            .problems
            .iter()
            .filter(|problem| problem.class == ProblemClass::Refused)
            .map(|problem| problem.path.clone())
            .collect();
        self.problems.retain(|problem| {
            problem.class != ProblemClass::Doubtful || !refused.contains(&problem.path)
        });
        self.problems.sort();
        self.problems.dedup();
        self
    }
}

/// A name or value for a message: quoted, and cut when it is long.
pub(crate) fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?} …", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_bounded_and_sorted() {
        let mut list = ProblemList::default();
        for line in (0..MAX_PROBLEMS + 7).rev() {
            let at = Position { line, column: 1 };
            list.add(ProblemClass::Doubtful, at, "a", format!("{line}"));
        }
        assert!(!list.is_refused());
        list.add(ProblemClass::Refused, Position::START, "a", "late");
        let list = list.finish();
        assert_eq!((list.as_slice().len(), list.omitted()), (MAX_PROBLEMS, 8));
        assert!(list.as_slice().is_sorted());
        assert!(list.is_refused(), "also by a problem that is not listed");
    }

    #[test]
    fn a_refusal_hides_doubts_about_the_same_member() {
        let mut list = ProblemList::default();
        let at = Position::START;
        list.add(ProblemClass::Doubtful, at, "a", "x");
        list.add(ProblemClass::Doubtful, at, "b", "x");
        list.add(ProblemClass::Refused, at, "a", "y");
        list.add(ProblemClass::Refused, at, "a", "y");
        let texts: Vec<_> = list
            .finish()
            .as_slice()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(texts, ["1:1: a: y", "1:1: b: x"]);
    }

    #[test]
    fn long_values_are_cut() {
        assert_eq!(quoted("a\n"), "\"a\\n\"");
        assert_eq!(quoted(&"ä".repeat(90)), format!("\"{}\" …", "ä".repeat(80)));
    }
}
