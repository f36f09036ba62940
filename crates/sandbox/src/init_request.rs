//! The request that starts init, from the guard.

use serde::{Deserialize, Serialize};

use crate::mechanisms::ConfinementReport;
use crate::spec::SandboxSpec;

/// First argument of init, the first process inside.
pub(crate) const INIT: &str = "sandbox-init";

/// Request to init.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct InitRequest {
    pub(crate) spec: SandboxSpec,
    /// The folder that becomes the root.
    pub(crate) root: Option<std::path::PathBuf>,
    /// Whether init is the first process of a PID namespace.
    pub(crate) own_processes: bool,
    /// Whether the service is root.
    pub(crate) is_root: bool,
    /// The user that the program gets.
    pub(crate) user: Option<u32>,
    /// Mechanisms so far.
    pub(crate) report: ConfinementReport,
}
