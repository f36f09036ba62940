//! Attempts to insert an image: BMCs accept an insertion into one drive, by one way, and leave it empty.

use std::fmt;

use super::error::BmcError;
use super::insert_form::InsertForm;
use super::media_slot::MediaSlot;

/// A way to insert an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsertWay {
    /// The action, with the parameters of the family.
    Action,
    /// The action with other parameters.
    OtherParameters,
    /// A write of the drive's properties.
    Properties,
}

impl InsertWay {
    /// All ways, the best one first: each is tried on every drive before the next one.
    pub(super) const ALL: [Self; 3] = [Self::Action, Self::OtherParameters, Self::Properties];

    /// Whether a drive has this way.
    pub(super) fn fits(self, slot: &MediaSlot) -> bool {
        slot.insert.is_some() || self == Self::Properties
    }

    /// The parameters; `usual` are those of the family.
    pub(super) fn form(self, usual: InsertForm) -> InsertForm {
        match self {
            Self::Action => usual,
            Self::OtherParameters => usual.other(),
            // Lenovo inserts nothing without the property.
            Self::Properties => InsertForm::FULL,
        }
    }
}

impl fmt::Display for InsertWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Action => "InsertMedia",
            Self::OtherParameters => "InsertMedia with other parameters",
            Self::Properties => "a write of its properties",
        })
    }
}

/// An attempt that failed.
#[derive(Debug, Clone)]
pub struct InsertAttempt {
    /// Name of the drive.
    pub drive: String,
    /// The way.
    pub way: InsertWay,
    /// The failure.
    pub error: BmcError,
}

impl InsertAttempt {
    /// Whether another drive, or another way, may take the image: some drives are for the console alone.
    ///
    /// Source: ironic, redfish/boot.py (Cisco UCS); dell/terraform-provider-redfish, issue 331 (204 without an effect).
    pub(super) fn leaves_others(error: &BmcError) -> bool {
        matches!(
            error,
            BmcError::Refused { .. }
                | BmcError::NotFound { .. }
                | BmcError::Unsupported { .. }
                | BmcError::NotApplied { .. }
                | BmcError::TaskFailed { .. }
                | BmcError::TaskTimeout { .. }
        )
    }
}

/// The error after all attempts: of a single one its own.
pub(super) fn not_inserted(image: String, mut attempts: Vec<InsertAttempt>) -> BmcError {
    match attempts.pop() {
        Some(only) if attempts.is_empty() => only.error,
        Some(last) => {
            attempts.push(last);
            BmcError::NotInserted { image, attempts }
        }
        None => BmcError::NotInserted { image, attempts },
    }
}

/// The attempts as a text, by drive.
pub(super) fn listed(attempts: &[InsertAttempt]) -> String {
    let mut drives: Vec<(&str, Vec<String>)> = Vec::new();
    for attempt in attempts {
        let result = match &attempt.error {
            BmcError::NotApplied { seen, cause, .. } => {
                format!("{}: accepted, and {seen} afterwards{cause}", attempt.way)
            }
            error => format!("{}: {error}", attempt.way),
        };
        match drives.iter_mut().find(|(name, _)| *name == attempt.drive) {
            Some((_, results)) => results.push(result),
            None => drives.push((&attempt.drive, vec![result])),
        }
    }
    let shown = drives
        .iter()
        .map(|(name, results)| format!("{name} ({})", results.join("; ")));
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(drive: &str, way: InsertWay) -> InsertAttempt {
        InsertAttempt {
            drive: drive.to_owned(),
            way,
            error: BmcError::NotApplied {
                doing: "insert the medium",
                expected: "http://a/b.iso".to_owned(),
                seen: "no medium".to_owned(),
                cause: String::new(),
            },
        }
    }

    #[test]
    fn attempts_are_listed_by_drive() {
        let attempts = vec![
            attempt("CD1", InsertWay::Action),
            attempt("CD2", InsertWay::Action),
            attempt("CD1", InsertWay::Properties),
        ];
        assert_eq!(
            listed(&attempts),
            "CD1 (InsertMedia: accepted, and no medium afterwards; a write of its properties: accepted, and no medium \
             afterwards), CD2 (InsertMedia: accepted, and no medium afterwards)"
        );
        let error = not_inserted("http://a/b.iso".to_owned(), attempts);
        assert!(matches!(error, BmcError::NotInserted { attempts, .. } if attempts.len() == 3));
        let only = not_inserted(String::new(), vec![attempt("CD1", InsertWay::Action)]);
        assert!(matches!(only, BmcError::NotApplied { .. }));
    }
}
