//! Injected faults, and how the services must report them.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use reqwest::{Method, StatusCode};
use tokio::net::TcpStream;

use super::journey::{HOSTS, Journey, PREPARE_DEADLINE, READY_DEADLINE};
use super::machines::Machines;
use super::watch::{self, Deadline, PAUSE, Watch, hosts, preparation_reason, text};

/// The machine with too little memory.
pub(super) const WEAK_HOST: &str = "worker-1";
/// The validation that must fail.
const MEMORY_VALIDATION: &str = "has-min-memory";
/// Timeout of stopping or starting a service.
const SERVICE_DEADLINE: Duration = Duration::from_mins(2);

/// One host has too little memory: it is refused, the others are not, and nothing can be installed.
pub(super) async fn ram(
    journey: &Journey<'_>,
    watch: &mut Watch<'_>,
    machines: &mut Machines,
) -> Result<()> {
    watch
        .until(machines, READY_DEADLINE, |cluster| {
            let status = |host| text(host, "status");
            let weak = hosts(cluster).find(|host| text(host, "requested_hostname") == WEAK_HOST);
            let known = hosts(cluster)
                .filter(|host| status(host) == "known")
                .count();
            Ok(weak.is_some_and(|host| status(host) == "insufficient") && known == HOSTS - 1)
        })
        .await?;
    let weak = hosts(&watch.cluster)
        .find(|host| text(host, "requested_hostname") == WEAK_HOST)
        .context("the weak host does not exist")?;
    let refused = watch::failing(WEAK_HOST, weak);
    let memory = refused
        .iter()
        .find(|line| line.contains(&format!("{MEMORY_VALIDATION} failure")));
    let memory = memory.with_context(|| {
        format!("{WEAK_HOST} is refused, but not by {MEMORY_VALIDATION}: {refused:?}")
    })?;
    journey.console.step(format!(
        "{WEAK_HOST} is refused, the other {} hosts are known",
        HOSTS - 1
    ));
    journey.console.step(memory);
    let path = format!(
        "/v2/clusters/{}/actions/install",
        text(&watch.cluster, "id")
    );
    let answer = journey.client.call(Method::POST, &path, None).await?;
    ensure!(
        !answer.status.is_success(),
        "a cluster with a refused host was installed all the same"
    );
    journey.console.step(format!(
        "installing is refused as well: {} {}",
        answer.status,
        words(&answer.reason())
    ));
    Ok(())
}

/// The registry is stopped: the preparation fails with a reason, the cluster is ready again, and installs once it is back.
pub(super) async fn registry(
    journey: &Journey<'_>,
    watch: &mut Watch<'_>,
    machines: &mut Machines,
    cluster_id: &str,
) -> Result<()> {
    let stop = RegistryStop::new(journey)?;
    stop.stop(journey).await?;
    journey.console.step(format!(
        "the registry at {} is stopped",
        journey.state.registry
    ));
    let path = format!("/v2/clusters/{cluster_id}/actions/install");
    let answer = journey.client.call(Method::POST, &path, None).await?;
    let reason = if answer.status == StatusCode::ACCEPTED {
        let mut has_begun = false;
        watch
            .until(machines, PREPARE_DEADLINE, |cluster| {
                let failed = text(&cluster["last-installation-preparation"], "status") == "failed";
                has_begun |= failed || text(cluster, "status") == "preparing-for-installation";
                match text(cluster, "status") {
                    "installing" | "finalizing" | "installed" => {
                        bail!("the installation began although the registry is stopped")
                    }
                    "ready" => Ok(has_begun && failed),
                    _ => Ok(false),
                }
            })
            .await?;
        preparation_reason(&watch.cluster).to_owned()
    } else {
        answer.reason()
    };
    ensure!(
        names_registry(&reason, &journey.state.registry),
        "the reason does not say that the registry is missing: {reason:?}"
    );
    journey.console.step(format!(
        "preparing failed, the cluster is ready again: {}",
        words(&reason)
    ));
    stop.start(journey).await?;
    journey.console.step("the registry is back");
    watch
        .until(machines, READY_DEADLINE, |cluster| {
            let known = hosts(cluster)
                .filter(|host| text(host, "status") == "known")
                .count();
            Ok(known == HOSTS && text(cluster, "status") == "ready")
        })
        .await
}

/// A reason is clear when it names the registry's address.
fn names_registry(reason: &str, registry: &str) -> bool {
    reason.contains(registry)
}

/// The words of a reason, without the JSON that follows them for programs.
fn words(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    line.split(" {\"").next().unwrap_or(line)
}

/// The order to the supervisor to keep the registry stopped: a file. Given back when this is dropped.
struct RegistryStop {
    order: PathBuf,
}

impl RegistryStop {
    fn new(journey: &Journey<'_>) -> Result<Self> {
        let beside = || journey.options.state.with_file_name("control");
        let control = journey.state.control.clone().unwrap_or_else(beside);
        fs::create_dir_all(&control)
            .with_context(|| format!("{}: cannot be made", control.display()))?;
        Ok(Self {
            order: control.join("registry.stop"),
        })
    }

    async fn stop(&self, journey: &Journey<'_>) -> Result<()> {
        fs::write(&self.order, "")
            .with_context(|| format!("{}: cannot be written", self.order.display()))?;
        self.until(journey, false).await
    }

    async fn start(self, journey: &Journey<'_>) -> Result<()> {
        fs::remove_file(&self.order)
            .with_context(|| format!("{}: cannot be removed", self.order.display()))?;
        self.until(journey, true).await
    }

    async fn until(&self, journey: &Journey<'_>, is_up: bool) -> Result<()> {
        let deadline = Deadline::new(SERVICE_DEADLINE);
        while TcpStream::connect(&journey.state.registry).await.is_ok() != is_up {
            let wanted = if is_up { "to be back" } else { "to stop" };
            deadline
                .pause(PAUSE, || format!("waiting for the registry {wanted}"))
                .await?;
        }
        Ok(())
    }
}

impl Drop for RegistryStop {
    fn drop(&mut self) {
        // A failed demo must not leave the registry stopped; `start` has removed the file already.
        let _ = fs::remove_file(&self.order);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_validations_behind_a_reason_are_left_out() {
        assert_eq!(words("not ready: RAM {\"network\":[]}"), "not ready: RAM");
    }

    #[test]
    fn a_clear_reason_names_the_registry() {
        assert!(names_registry(
            "cannot reach 127.0.0.1:5000: connection refused",
            "127.0.0.1:5000"
        ));
        assert!(!names_registry("internal error", "127.0.0.1:5000"));
    }
}
