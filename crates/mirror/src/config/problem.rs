//! Problems of a configuration.

use std::fmt;

use located_yaml::Position;

/// Problems that are kept: more than one reads.
const MAX_PROBLEMS: usize = 1000;
/// Longest text of one problem. Units: characters.
const MAX_LENGTH: usize = 500;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    pub place: Position,
    /// Path of the member, as in `mirror.operators[0].catalog`; empty for the whole text.
    pub path: String,
    /// The value, and the expected form.
    pub text: String,
}

/// All problems, in the order of the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigProblems {
    pub list: Vec<ConfigProblem>,
    /// Problems beyond the limit.
    pub left_out: usize,
}

impl ConfigProblems {
    /// Also those that are not listed.
    pub fn count(&self) -> usize {
        self.list.len() + self.left_out
    }

    pub(super) fn push(&mut self, place: Position, path: &str, text: impl Into<String>) {
        if self.is_full() {
            self.left_out += 1;
            return;
        }
        let mut text = text.into();
        if let Some((end, _)) = text.char_indices().nth(MAX_LENGTH) {
            text.truncate(end);
            text.push('…');
        }
        let path = path.to_owned();
        self.list.push(ConfigProblem { place, path, text });
    }

    /// Whether more are only counted.
    pub(super) fn is_full(&self) -> bool {
        self.list.len() == MAX_PROBLEMS
    }

    pub(super) fn one(place: Position, text: impl Into<String>) -> Self {
        let mut problems = Self::default();
        problems.push(place, "", text);
        problems
    }

    /// Nothing wrong is no error.
    pub(super) fn into_result(mut self) -> Result<(), Self> {
        self.list.sort_by_key(|problem| problem.place);
        if self.list.is_empty() {
            Ok(())
        } else {
            Err(self)
        }
    }
}

/// `line:column: path: text`.
impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.text)
    }
}

/// One a line.
impl fmt::Display for ConfigProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.list.iter().enumerate() {
            let newline = if index == 0 { "" } else { "\n" };
            write!(f, "{newline}{problem}")?;
        }
        match self.left_out {
            0 => Ok(()),
            more => write!(f, "\n{more} more problems follow"),
        }
    }
}

impl std::error::Error for ConfigProblems {}
