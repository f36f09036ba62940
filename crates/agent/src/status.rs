//! The state of the agent, for the console of the host.

use std::sync::Arc;

use tokio::sync::watch;
use uuid::Uuid;

/// The agent's state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AgentStatus {
    pub(crate) host_id: Option<Uuid>,
    pub(crate) is_registered: bool,
    /// The last failure of a request to the service; none after a success.
    pub(crate) failure: Option<String>,
    /// The stage of the installation, or how it failed.
    pub(crate) installation: Option<String>,
    /// The last result of each check that other services answer: name and problem, or none.
    pub(crate) checks: Vec<(String, Option<String>)>,
}

/// A handle on the state; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct StatusHandle(Arc<watch::Sender<AgentStatus>>);

impl Default for StatusHandle {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(AgentStatus::default())))
    }
}

impl StatusHandle {
    pub(crate) fn change(&self, change: impl FnOnce(&mut AgentStatus)) {
        self.0.send_modify(change);
    }

    /// Records the result of a check.
    pub(crate) fn check(&self, name: &str, problem: Option<String>) {
        self.change(
            |status| match status.checks.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => *known = problem,
                None => status.checks.push((name.to_owned(), problem)),
            },
        );
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<AgentStatus> {
        self.0.subscribe()
    }
}
