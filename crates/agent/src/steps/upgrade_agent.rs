//! Step `upgrade-agent`: refused, since this agent is a file of the discovery image and not a container image.
//!
//! A service of ours does not ask for it; the peer's does, when its own image differs from this agent's version.
//!
//! Source: assisted-installer-agent, src/upgrade_agent; the result `failure` becomes an event of the host, once an hour.

use model::steps::UpgradeAgentResponse;
use serde::Deserialize;

use super::context::{StepOutcome, only};

#[derive(Debug, Deserialize)]
struct UpgradeRequest {
    agent_image: String,
}

pub(super) fn run(arguments: &[String]) -> Result<StepOutcome, String> {
    let UpgradeRequest { agent_image } = only(arguments)?;
    tracing::warn!(
        agent_image,
        "agent not upgraded: it is part of the discovery image, boot a new one instead"
    );
    StepOutcome::json(&UpgradeAgentResponse {
        agent_image,
        result: "failure".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upgrades_are_refused_by_a_result() {
        let request = r#"{"agent_image":"quay.io/a/agent:v2"}"#.to_owned();
        let outcome = run(&[request]).unwrap();
        let expected = r#"{"agent_image":"quay.io/a/agent:v2","result":"failure"}"#;
        assert_eq!((outcome.exit_code, outcome.output.as_str()), (0, expected));
        assert!(!outcome.registers_again);
        assert!(run(&["{}".to_owned()]).is_err());
    }
}
