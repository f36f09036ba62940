//! Steps `install` and `stop-installation`.

use std::sync::Arc;

use model::steps::InstallCmdRequest;

use super::context::{StepContext, StepOutcome, only};
use crate::install;

/// Exit code of podman when the installer's container exists: the service knows that it runs.
const RUNS_ALREADY: i64 = 125;

/// Starts the installation; its progress has reports of its own.
pub(super) fn run(context: &Arc<StepContext>, arguments: &[String]) -> Result<StepOutcome, String> {
    let request: InstallCmdRequest = only(arguments)?;
    if install::begin(context, request)? {
        return Ok(StepOutcome::default());
    }
    Ok(StepOutcome {
        exit_code: RUNS_ALREADY,
        error: "the name \"assisted-installer\" is already in use: the installation runs"
            .to_owned(),
        ..StepOutcome::default()
    })
}

pub(super) fn stop(context: &StepContext) -> StepOutcome {
    context.installation.stop();
    context
        .status
        .change(|status| status.installation = Some("stopped".to_owned()));
    StepOutcome::default()
}
