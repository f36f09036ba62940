//! Findings of checks: the outcome for one subject, and those for all subjects of a check.

use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};

use crate::report::CheckStatus;

/// Checks at a time, and subjects of one check at a time.
pub(super) const CONCURRENT: usize = 8;
/// Timeout of one subject.
const SUBJECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The outcome for one subject of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SubjectFinding {
    pub(super) subject: String,
    pub(super) status: CheckStatus,
    pub(super) finding: String,
    pub(super) remedy: String,
}

impl SubjectFinding {
    /// The finding of `outcome`.
    pub(super) fn of(subject: impl Into<String>, outcome: Result<String, SubjectProblem>) -> Self {
        match outcome {
            Ok(finding) => Self::passed(subject, finding),
            Err((status, finding, remedy)) => Self {
                status,
                ..Self::failed(subject, finding, remedy)
            },
        }
    }

    pub(super) fn passed(subject: impl Into<String>, finding: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            status: CheckStatus::Passed,
            finding: finding.into(),
            remedy: String::new(),
        }
    }

    pub(super) fn warning(
        subject: impl Into<String>,
        finding: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            status: CheckStatus::Warning,
            ..Self::failed(subject, finding, remedy)
        }
    }

    pub(super) fn failed(
        subject: impl Into<String>,
        finding: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            subject: subject.into(),
            status: CheckStatus::Failed,
            finding: finding.into(),
            remedy: remedy.into(),
        }
    }
}

/// A status other than passed, the finding and its remedy.
pub(super) type SubjectProblem = (CheckStatus, String, String);

/// Findings for all `subjects`, each with a timeout. The first of a pair is its name.
pub(super) async fn each<T, F>(
    subjects: Vec<(String, T)>,
    remedy: &'static str,
    find: impl Fn(String, T) -> F,
) -> Vec<SubjectFinding>
where
    F: Future<Output = SubjectFinding>,
{
    let running = subjects.into_iter().map(|(name, subject)| {
        let found = find(name.clone(), subject);
        async move {
            tokio::time::timeout(SUBJECT_TIMEOUT, found)
                .await
                .unwrap_or_else(|_| {
                    let finding = format!("no answer within {} s", SUBJECT_TIMEOUT.as_secs());
                    SubjectFinding::failed(name, finding, remedy)
                })
        }
    });
    stream::iter(running).buffered(CONCURRENT).collect().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_subject_without_an_answer_hides_no_other() {
        let subjects = vec![("a".to_owned(), true), ("b".to_owned(), false)];
        let found = each(subjects, "wait", |name, hangs| async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            SubjectFinding::passed(name, "")
        });
        let found = found.await;
        assert_eq!(
            (found[0].status, found[0].remedy.as_str()),
            (CheckStatus::Failed, "wait")
        );
        assert_eq!(found[1].status, CheckStatus::Passed);
    }
}
