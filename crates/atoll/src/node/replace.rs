//! `atoll node replace`: a control node is replaced by one command, which can be killed and run again at any point.

mod arguments;
mod machines;
mod plan_text;
mod printer;
mod records;
mod session;

use service::Error;
use service::runtime;

pub(crate) use self::arguments::NodeReplaceArgs;
use self::session::ReplacementSession;

/// Plans, runs, continues or ends the replacement of a node.
///
/// Errors: as of [`replacement::ReplacementError`]; the replacement is refused; another one is under way.
pub(super) fn run(arguments: &NodeReplaceArgs) -> Result<(), Error> {
    runtime::block_on(async {
        if arguments.format.is_json() && !arguments.plan {
            let reason = "only the plan is JSON: add --dry-run";
            return Err(Error::new("replacing a node", reason));
        }
        let session = ReplacementSession::open(arguments).await?;
        if arguments.plan {
            session.plan(arguments).await
        } else {
            session.perform(arguments).await
        }
    })?
}
