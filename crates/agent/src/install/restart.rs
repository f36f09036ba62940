//! The end of an installation: the host restarts, by itself or by Ironic.
//!
//! Source: openshift/assisted-installer, src/installer, finalize.

use std::time::Duration;

use crate::Error;
use crate::command::succeed;

pub(super) const SYSTEMCTL: &str = "systemctl";
const IRONIC_AGENT: &str = "ironic-agent.service";
/// The unit of this agent, which the Ironic agent waits for.
const OWN_UNIT: &str = "agent.service";
const COMMAND_TIMEOUT: Duration = Duration::from_mins(2);

/// Whether the live system has an Ironic agent, which restarts the host once this agent has stopped.
///
/// A live system without systemd has none.
pub(super) async fn has_ironic_agent(systemctl: &str) -> bool {
    let arguments = ["list-units", "--no-legend", IRONIC_AGENT];
    match succeed(systemctl, &arguments, COMMAND_TIMEOUT).await {
        Ok(units) => units.contains(IRONIC_AGENT),
        Err(error) => {
            let error = error.chain();
            tracing::warn!(error, "units not listed: the host restarts by itself");
            false
        }
    }
}

/// Stops the unit of this agent. The program does not wait: it is stopped with the unit.
pub(super) async fn stop_agent(systemctl: &str) -> Result<(), Error> {
    let arguments = ["stop", "--no-block", OWN_UNIT];
    let stopped = succeed(systemctl, &arguments, COMMAND_TIMEOUT).await;
    stopped.map(|_| ())
}

/// Restarts the host. Without systemd, as in a rescue system, the kernel is asked.
pub(crate) async fn reboot() -> Result<(), Error> {
    if succeed(SYSTEMCTL, &["reboot"], COMMAND_TIMEOUT)
        .await
        .is_ok()
    {
        return Ok(());
    }
    rustix::fs::sync();
    rustix::system::reboot(rustix::system::RebootCommand::Restart)
        .map_err(|error| Error::io("restarting the host", error.into()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// A program that records its arguments, prints `output` and ends with `code`.
    ///
    /// Another process writes it: children of other tests would inherit the open file, and it could not be run.
    async fn program(folder: &Path, output: &str, code: u8) -> String {
        let path = folder.join("systemctl").display().to_string();
        let script =
            format!("#!/bin/sh\necho \"$@\" >> \"$0.log\"\necho '{output}'\nexit {code}\n");
        let write = r#"printf %s "$1" > "$0" && chmod +x "$0""#;
        succeed("sh", &["-c", write, &path, &script], COMMAND_TIMEOUT)
            .await
            .unwrap();
        path
    }

    #[tokio::test]
    async fn an_ironic_agent_is_a_listed_unit() {
        let folder = tempfile::tempdir().unwrap();
        let listed = "ironic-agent.service loaded active running Ironic Agent";
        for (output, code, expected) in [(listed, 0, true), ("", 0, false), (listed, 1, false)] {
            let systemctl = program(folder.path(), output, code).await;
            assert_eq!(
                has_ironic_agent(&systemctl).await,
                expected,
                "{output} {code}"
            );
        }
        assert!(!has_ironic_agent("no-such-program").await);
    }

    #[tokio::test]
    async fn the_unit_of_the_agent_is_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let systemctl = program(folder.path(), "", 0).await;
        stop_agent(&systemctl).await.unwrap();
        let log = std::fs::read_to_string(format!("{systemctl}.log")).unwrap();
        assert_eq!(log, "stop --no-block agent.service\n");
        let systemctl = program(folder.path(), "", 1).await;
        assert!(stop_agent(&systemctl).await.is_err());
    }
}
