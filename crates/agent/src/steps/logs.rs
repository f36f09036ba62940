//! Step `logs-gather`.

use model::steps::LogsGatherCmdRequest;

use super::{StepContext, StepOutcome, only};
use crate::logs;

pub(super) async fn run(
    context: &StepContext,
    arguments: &[String],
) -> Result<StepOutcome, String> {
    let request: LogsGatherCmdRequest = only(arguments)?;
    let cluster_id = request.cluster_id.0;
    let uploaded = logs::upload(&context.api, cluster_id, context.host_id).await;
    uploaded.map_err(|error| error.chain())?;
    Ok(StepOutcome::default())
}
