//! Errors of BMCs: each names the request or the action, the reason, and the remedy where one exists.

use super::boot_step::{BootStep, StoppedPower};
use super::boot_url::BootUrlError;
use super::insert_form::InsertWay;
use super::message::RedfishMessage;

/// The failure of an operation on a BMC. No text holds credentials.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BmcError {
    /// The address of the record is unusable.
    #[error("the address {address}: {reason}")]
    Address {
        /// As given, without user name, password and query.
        address: String,
        /// The problem, and an acceptable value.
        reason: String,
    },
    /// No connection, or no answer.
    #[error("the BMC cannot be reached ({request}): {reason}")]
    Unreachable {
        /// Method and path.
        request: String,
        /// The cause.
        reason: String,
    },
    /// No BMC was found at an address, for whichever reason.
    #[error(
        "no BMC was found at this address: it is outside of BMC_NETWORKS, does not answer, has a certificate that is not \
         trusted, refuses the user name or the password, or has no Redfish; the log of the server has the reason"
    )]
    NoBmc,
    /// The connection broke off after the request was sent: the BMC may have acted.
    #[error("the BMC broke off ({request}): {reason}")]
    Interrupted {
        /// Method and path.
        request: String,
        /// The cause.
        reason: String,
    },
    /// The certificate does not prove the BMC's identity. Nothing was sent.
    #[error(
        "the certificate of the BMC is not trusted: {reason}; trust its authority, or set \
         disableCertificateVerification in the host's record"
    )]
    Untrusted {
        /// The cause.
        reason: String,
    },
    /// Wrong credentials. They are not sent again, since BMCs lock accounts.
    #[error(
        "the BMC refused the user name or the password ({request}){reason}; correct the secret of the host's record"
    )]
    Unauthenticated {
        /// Method and path.
        request: String,
        /// The BMC's words, after a colon, or nothing.
        reason: String,
    },
    /// The account lacks a privilege.
    #[error(
        "the BMC's account is not allowed to {request}{reason}; give it the role of an operator or administrator"
    )]
    Forbidden {
        /// Method and path.
        request: String,
        /// The BMC's words, after a colon, or nothing.
        reason: String,
    },
    /// A redirect to another origin, which is not followed.
    #[error(
        "the BMC redirects {request} to {to}, which is another address: credentials are not sent there; if that is the \
         BMC, correct the address of the host's record"
    )]
    Redirected {
        /// Method and path.
        request: String,
        /// Origin of the target.
        to: String,
    },
    /// A link to another origin, or one that is no path.
    #[error("the BMC's answer to {request} links to {to}, which is not an address of this BMC")]
    ForeignLink {
        /// Method and path.
        request: String,
        /// The link, without user name, password and query.
        to: String,
    },
    /// The answer passes a bound.
    #[error("the BMC's answer to {request} has more than {limit}")]
    TooLarge {
        /// Method and path.
        request: String,
        /// The bound, with its unit.
        limit: String,
    },
    /// The answer is no Redfish document.
    #[error("the BMC's answer to {request} is not Redfish: {reason}")]
    Unreadable {
        /// Method and path.
        request: String,
        /// The problem.
        reason: String,
    },
    /// The BMC does not have the resource.
    #[error("the BMC has no {path}{remedy}")]
    NotFound {
        /// Path of the resource.
        path: String,
        /// The remedy, after a colon, or nothing.
        remedy: String,
    },
    /// The BMC refused a request.
    #[error("the BMC refused {request} with status {status}: {reason}")]
    Refused {
        /// Method and path.
        request: String,
        /// HTTP status.
        status: u16,
        /// The BMC's words.
        reason: String,
        /// Its messages.
        messages: Vec<RedfishMessage>,
    },
    /// The BMC stays busy after all attempts, or asks for a longer wait than is granted.
    #[error("the BMC is busy ({request}, status {status}): {reason}; try again later")]
    Busy {
        /// Method and path.
        request: String,
        /// HTTP status.
        status: u16,
        /// The BMC's words.
        reason: String,
    },
    /// The BMC cannot do it.
    #[error("the BMC has no {feature}: {reason}")]
    Unsupported {
        /// The missing feature.
        feature: &'static str,
        /// The finding, and the remedy.
        reason: String,
    },
    /// The BMC accepted a request, and nothing changed.
    #[error("the BMC accepted to {doing}, but reads {seen} instead of {expected}{cause}")]
    NotApplied {
        /// The action.
        doing: &'static str,
        /// The requested value.
        expected: String,
        /// The value that was read last.
        seen: String,
        /// An earlier failure of the request, after a semicolon, or nothing.
        cause: String,
    },
    /// The image's address is unusable.
    #[error("the address of the image {0}")]
    BootUrl(#[from] BootUrlError),
    /// No drive holds the image after all attempts.
    #[error(
        "no virtual CD drive took the image {image}; tried: {}; check that the BMC reaches the address of the image, or \
         use UEFI HTTP boot",
        listed(.attempts)
    )]
    NotInserted {
        /// Address of the image, without its query.
        image: String,
        /// The attempts, in order.
        attempts: Vec<InsertAttempt>,
    },
    /// A task of the BMC failed.
    #[error("the BMC's task for {request} ended as {state}: {reason}")]
    TaskFailed {
        /// Method and path.
        request: String,
        /// State of the task.
        state: String,
        /// The BMC's words.
        reason: String,
    },
    /// A task of the BMC did not end in time.
    #[error("the BMC's task for {request} has not ended after {seconds} s")]
    TaskTimeout {
        /// Method and path.
        request: String,
        /// The deadline. Units: seconds.
        seconds: u64,
    },
    /// The same host is twice in one list.
    #[error("the host is twice in the list: {first} has the same BMC address")]
    Duplicate {
        /// Name of the first.
        first: String,
    },
    /// The caller gave up.
    #[error("cancelled")]
    Cancelled,
    /// A failure of this program.
    #[error("{doing} failed: {reason}")]
    Internal {
        /// The failed action.
        doing: &'static str,
        /// The cause.
        reason: String,
    },
    /// A step of a procedure failed.
    #[error("{step}: {source}{}", power.map_or("", StoppedPower::remark))]
    Step {
        /// The step.
        step: BootStep,
        /// The power that the procedure left the host with, where it has changed it.
        power: Option<StoppedPower>,
        /// The failure.
        #[source]
        source: Box<BmcError>,
    },
}

impl BmcError {
    /// The failure without the step of a procedure.
    pub fn cause(&self) -> &Self {
        match self {
            Self::Step { source, .. } => source.cause(),
            other => other,
        }
    }

    /// Whether the same operation may succeed later, without a person's act.
    pub fn is_transient(&self) -> bool {
        match self.cause() {
            Self::NoBmc
            | Self::Unreachable { .. }
            | Self::Interrupted { .. }
            | Self::Busy { .. }
            | Self::NotApplied { .. }
            | Self::TaskTimeout { .. } => true,
            Self::NotInserted { attempts, .. } => attempts.iter().any(|it| it.error.is_transient()),
            // A state that other requests change, or a failure of the BMC.
            Self::Refused { status, .. } => matches!(status, 408 | 409 | 500..=599),
            _ => false,
        }
    }

    /// HTTP status of a refusal.
    pub(super) fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } | Self::Busy { status, .. } => Some(*status),
            Self::NotFound { .. } => Some(404),
            Self::Forbidden { .. } => Some(403),
            _ => None,
        }
    }

    /// Whether the BMC may have acted all the same, so that its state decides.
    pub(super) fn is_uncertain(&self) -> bool {
        matches!(self, Self::Interrupted { .. })
    }
}

/// An attempt to insert an image that failed: BMCs accept one into some drive, by some way, and leave it empty.
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
fn listed(attempts: &[InsertAttempt]) -> String {
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
    fn failures_that_a_person_must_mend_are_final() {
        let request = || "GET /redfish/v1/".to_owned();
        let reason = || "a reason".to_owned();
        let refused = |status| BmcError::Refused {
            request: request(),
            status,
            reason: reason(),
            messages: Vec::new(),
        };
        let unreachable = BmcError::Unreachable {
            request: request(),
            reason: reason(),
        };
        let in_step = BmcError::Step {
            step: BootStep::PowerOff,
            power: None,
            source: Box::new(unreachable.clone()),
        };
        let unauthenticated = BmcError::Unauthenticated {
            request: request(),
            reason: String::new(),
        };
        for (error, expected) in [
            (unreachable, true),
            (in_step, true),
            (refused(500), true),
            (refused(503), true),
            (refused(409), true),
            (refused(400), false),
            (refused(412), false),
            (unauthenticated, false),
            (BmcError::Untrusted { reason: reason() }, false),
            (BmcError::Cancelled, false),
        ] {
            assert_eq!(error.is_transient(), expected, "{error}");
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
