//! Step `inventory`.

use super::context::{StepContext, StepOutcome};
use crate::inventory::{SizeLimits, inventory, truncate};
use crate::links::LinkTable;

pub(super) async fn run(
    context: &StepContext,
    arguments: &[String],
) -> Result<StepOutcome, String> {
    // The first argument is the host's id, which the reply does not need.
    let options = arguments.get(1..).ok_or("expected the host's id")?;
    let limits = SizeLimits::parse(options)?;
    let files = context.files.clone();
    let table = LinkTable::read(&files)
        .await
        .map_err(|error| error.chain())?;
    let read = tokio::task::spawn_blocking(move || truncate(inventory(&files, &table), limits));
    let output = read.await.map_err(|error| error.to_string())?;
    Ok(StepOutcome {
        output: output.map_err(|error| error.to_string())?,
        ..StepOutcome::default()
    })
}
