//! Problems of both files, collected: one answer lists all refusals, each with its position.

use std::fmt::Write as _;

use located_yaml::Position;
use model::Error;

/// Refusals that an error lists; more are counted.
const LISTED: usize = 100;

/// The purpose for which files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadPurpose {
    /// They change records: values that disagree with each other are refused.
    Apply,
    /// They are rehearsed: values that disagree are findings of the rehearsal, with requirement and remedy.
    Rehearse,
}

/// Refusals and notes.
#[derive(Debug)]
pub(crate) struct SiteProblems {
    purpose: ReadPurpose,
    refused: Vec<SiteRefusal>,
    omitted: usize,
    notes: Vec<String>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SiteRefusal {
    file: &'static str,
    at: Position,
    path: String,
    reason: String,
}

impl SiteProblems {
    pub(crate) fn new(purpose: ReadPurpose) -> Self {
        Self {
            purpose,
            refused: Vec::new(),
            omitted: 0,
            notes: Vec::new(),
        }
    }

    /// Whether values that disagree with each other are refused.
    pub(crate) fn refuses_disagreements(&self) -> bool {
        self.purpose == ReadPurpose::Apply
    }

    /// Adds a refusal.
    pub(crate) fn refuse(
        &mut self,
        file: &'static str,
        at: Position,
        path: impl Into<String>,
        reason: impl Into<String>,
    ) {
        if self.refused.len() == LISTED {
            self.omitted += 1;
            return;
        }
        let (path, reason) = (path.into(), reason.into());
        self.refused.push(SiteRefusal {
            file,
            at,
            path,
            reason,
        });
    }

    /// Adds a note about a member whose effect differs from the installer's.
    pub(crate) fn note(&mut self, file: &str, path: &str, text: impl std::fmt::Display) {
        self.notes.push(format!("{file}: {path}: {text}"));
    }

    /// Whether more refusals are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.refused.len() == LISTED
    }

    /// Whether a member whose path begins so is refused.
    pub(crate) fn has_refused(&self, file: &str, prefix: &str) -> bool {
        let mut refused = self.refused.iter();
        refused.any(|one| one.file == file && one.path.starts_with(prefix))
    }

    /// The notes.
    ///
    /// Errors: Invalid – the refusals, sorted by position.
    pub(crate) fn finish(mut self) -> Result<Vec<String>, Error> {
        self.refused.sort();
        self.refused.dedup();
        let mut refused = self.refused.into_iter();
        let Some(first) = refused.next() else {
            return Ok(self.notes);
        };
        let mut reason = first.reason.clone();
        for next in refused {
            // Writing into a text cannot fail.
            let _ = write!(reason, "\n{}: {}", next.field(), next.reason);
        }
        if self.omitted > 0 {
            let _ = write!(reason, "\nand {} more", self.omitted);
        }
        Err(Error::invalid(first.field(), reason))
    }
}

impl SiteRefusal {
    /// File, position and path.
    fn field(&self) -> String {
        let Self { file, at, path, .. } = self;
        if path.is_empty() {
            return format!("{file}:{at}");
        }
        format!("{file}:{at}: {path}")
    }
}
