//! Step `logs-gather`.

use std::net::IpAddr;
use std::time::Duration;

use model::steps::LogsGatherCmdRequest;

use super::context::{StepContext, StepOutcome, only};
use crate::logs::{HostLogs, LogScope};

/// For all of it. Source: assisted-installer-agent, src/commands/actions/logs_gather.go.
const TIMEOUT: Duration = Duration::from_hours(1);

pub(super) async fn run(
    context: &StepContext,
    arguments: &[String],
) -> Result<StepOutcome, String> {
    let request: LogsGatherCmdRequest = only(arguments)?;
    let logs = HostLogs {
        api: &context.api,
        files: &context.files,
        cluster_id: request.cluster_id.0,
        host_id: context.host_id,
    };
    let scope = scope(&request)?;
    match tokio::time::timeout(TIMEOUT, logs.upload(&scope)).await {
        Ok(uploaded) => uploaded.map_err(|error| error.chain())?,
        Err(_) => return Err(format!("the logs were not collected within {TIMEOUT:?}")),
    }
    Ok(StepOutcome::default())
}

fn scope(request: &LogsGatherCmdRequest) -> Result<LogScope, String> {
    let address = |text: &String| {
        let address: Result<IpAddr, _> = text.parse();
        address.map_err(|error| format!("master_ips: {text:?}: {error}"))
    };
    let masters: Result<Vec<IpAddr>, String> = request.master_ips.iter().map(address).collect();
    Ok(LogScope {
        is_full: request.installer_gather,
        bootstrap: if request.bootstrap {
            Some(masters?)
        } else {
            None
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masters_are_those_of_the_bootstrap() {
        let mut request = LogsGatherCmdRequest {
            master_ips: vec!["10.0.0.2".to_owned()],
            installer_gather: true,
            ..LogsGatherCmdRequest::default()
        };
        assert_eq!(scope(&request).unwrap().bootstrap, None);
        request.bootstrap = true;
        let expected = LogScope {
            is_full: true,
            bootstrap: Some(vec!["10.0.0.2".parse().unwrap()]),
        };
        assert_eq!(scope(&request), Ok(expected));
        request.master_ips.push("--id".to_owned());
        assert!(scope(&request).unwrap_err().contains("--id"));
    }
}
