//! Checks whose clients this crate must not have: of the database, and of gRPC.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::report::CheckStatus;

type ProbeFunction = dyn Fn() -> BoxFuture<'static, Result<String, ProbeProblem>> + Send + Sync;

/// The problem that a probe found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeProblem {
    /// Warning or failed.
    pub status: CheckStatus,
    /// The observation, without secrets.
    pub finding: String,
    /// The action that makes it pass.
    pub remedy: String,
}

/// A subject and the function that checks it.
#[derive(Clone)]
pub struct SiteProbe {
    subject: String,
    probe: Arc<ProbeFunction>,
}

impl SiteProbe {
    /// A probe of `subject`; its result is the finding, or the problem.
    pub fn new<F>(subject: impl Into<String>, probe: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<String, ProbeProblem>> + Send + 'static,
    {
        Self {
            subject: subject.into(),
            probe: Arc::new(move || Box::pin(probe())),
        }
    }

    pub(crate) fn subject(&self) -> &str {
        &self.subject
    }

    pub(crate) async fn run(&self) -> Result<String, ProbeProblem> {
        (self.probe)().await
    }
}

impl fmt::Debug for SiteProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SiteProbe")
            .field("subject", &self.subject)
            .finish_non_exhaustive()
    }
}
