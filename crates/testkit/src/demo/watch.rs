//! Polls for conditions, and prints changes meanwhile.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::Value;

use super::client::DemoClient;
use super::console::Console;
use super::machines::Machines;

/// Polling interval.
pub(super) const PAUSE: Duration = Duration::from_millis(500);

/// Interval of printing failed validations while a cluster is not ready.
const VALIDATIONS_INTERVAL: Duration = Duration::from_secs(15);

/// Deadline of a wait.
pub(super) struct Deadline(Instant, Duration);

impl Deadline {
    pub(super) fn new(limit: Duration) -> Self {
        Self(Instant::now() + limit, limit)
    }

    /// Waits for `pause`, or fails after the deadline with `state`.
    pub(super) async fn pause(
        &self,
        pause: Duration,
        state: impl FnOnce() -> String,
    ) -> Result<()> {
        if Instant::now() >= self.0 {
            bail!("timed out after {} s: {}", self.1.as_secs(), state());
        }
        tokio::time::sleep(pause).await;
        Ok(())
    }
}

/// Last state of a cluster and its hosts.
pub(super) struct Watch<'a> {
    client: &'a DemoClient,
    console: &'a Console,
    cluster_id: &'a str,
    seen: BTreeMap<String, String>,
    validations_printed: Instant,
    /// The cluster as last read, with its hosts.
    pub(super) cluster: Value,
}

impl<'a> Watch<'a> {
    pub(super) fn new(client: &'a DemoClient, console: &'a Console, cluster_id: &'a str) -> Self {
        Self {
            client,
            console,
            cluster_id,
            seen: BTreeMap::new(),
            validations_printed: Instant::now(),
            cluster: Value::Null,
        }
    }

    /// Polls until `done` holds. `done` fails on a final state.
    pub(super) async fn until(
        &mut self,
        machines: &mut Machines,
        limit: Duration,
        mut done: impl FnMut(&Value) -> Result<bool>,
    ) -> Result<()> {
        let deadline = Deadline::new(limit);
        loop {
            machines.check(self.console)?;
            self.cluster = self
                .client
                .get(&format!("/v2/clusters/{}", self.cluster_id))
                .await?;
            self.print_changes();
            self.print_failed_validations();
            if done(&self.cluster)? {
                return Ok(());
            }
            let cluster = &self.cluster;
            deadline
                .pause(PAUSE, || {
                    format!(
                        "{}\n{}",
                        summary(cluster),
                        failed_validations(cluster).join("\n")
                    )
                })
                .await?;
        }
    }

    fn print_failed_validations(&mut self) {
        let is_blocked = matches!(
            text(&self.cluster, "status"),
            "insufficient" | "pending-for-input"
        );
        if is_blocked && self.validations_printed.elapsed() >= VALIDATIONS_INTERVAL {
            self.validations_printed = Instant::now();
            self.console.event("failed validations:");
            for line in failed_validations(&self.cluster) {
                self.console.detail(line);
            }
        }
    }

    fn print_changes(&mut self) {
        let cluster = self.cluster.clone();
        for host in hosts(&cluster) {
            let name = text(host, "requested_hostname");
            let stage = host["progress"]["current_stage"]
                .as_str()
                .unwrap_or_default();
            let status = if stage.is_empty() {
                text(host, "status").to_owned()
            } else {
                format!("{}: {stage}", text(host, "status"))
            };
            self.print(
                text(host, "id"),
                &format!("host {name} {}", role(host)),
                status,
                "",
            );
        }
        let percent = cluster["progress"]["total_percentage"]
            .as_u64()
            .unwrap_or(0);
        let stage = cluster["progress"]["finalizing_stage"]
            .as_str()
            .unwrap_or_default();
        let status = format!("{} {percent}% {stage}", text(&cluster, "status"));
        self.print("cluster", "cluster", status, text(&cluster, "status_info"));
    }

    fn print(&mut self, key: &str, name: &str, status: String, info: &str) {
        if self.seen.get(key) != Some(&status) {
            let info = if info.is_empty() {
                String::new()
            } else {
                format!(" ({info})")
            };
            self.console
                .event(format!("{name} → {}{info}", status.trim()));
            self.seen.insert(key.to_owned(), status);
        }
    }
}

/// The hosts of a cluster.
pub(super) fn hosts(cluster: &Value) -> impl Iterator<Item = &Value> {
    cluster["hosts"].as_array().into_iter().flatten()
}

/// A member that is a text.
pub(super) fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_default()
}

fn role(host: &Value) -> String {
    let role = text(host, "role");
    let role = if role == "auto-assign" {
        text(host, "suggested_role")
    } else {
        role
    };
    let bootstrap = if host["bootstrap"] == true {
        ", bootstrap"
    } else {
        ""
    };
    if role.is_empty() {
        String::new()
    } else {
        format!("[{role}{bootstrap}]")
    }
}

/// One line with the status of a cluster.
pub(super) fn summary(cluster: &Value) -> String {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for host in hosts(cluster) {
        *counts.entry(text(host, "status")).or_default() += 1;
    }
    let counts: Vec<String> = counts
        .iter()
        .map(|(status, count)| format!("{count} {status}"))
        .collect();
    format!(
        "cluster is {} ({}), hosts: {}",
        text(cluster, "status"),
        text(cluster, "status_info"),
        counts.join(", ")
    )
}

/// The validations that are not satisfied, of the cluster and of each host.
pub(super) fn failed_validations(cluster: &Value) -> Vec<String> {
    let mut lines = failing("cluster", cluster);
    for host in hosts(cluster) {
        lines.extend(failing(
            &format!("host {}", text(host, "requested_hostname")),
            host,
        ));
    }
    lines
}

/// Lines "name: id: message" of the validations of one object that failed, are pending or in error.
pub(super) fn failing(name: &str, object: &Value) -> Vec<String> {
    let categories: Value =
        serde_json::from_str(text(object, "validations_info")).unwrap_or_default();
    let all = categories
        .as_object()
        .into_iter()
        .flatten()
        .flat_map(|(_, list)| list.as_array().into_iter().flatten());
    all.filter(|validation| matches!(text(validation, "status"), "failure" | "pending" | "error"))
        .map(|v| {
            format!(
                "{name}: {} {}: {}",
                text(v, "id"),
                text(v, "status"),
                text(v, "message")
            )
        })
        .collect()
}

/// Reason of the last failed preparation.
pub(super) fn preparation_reason(cluster: &Value) -> &str {
    text(&cluster["last-installation-preparation"], "reason")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn failed_validations_are_listed() {
        let info = json!({ "hardware": [
            { "id": "has-min-memory", "status": "failure", "message": "too little" },
            { "id": "has-inventory", "status": "success", "message": "ok" },
        ] });
        let cluster = json!({ "validations_info": "", "hosts": [
            { "requested_hostname": "worker-1", "status": "insufficient", "validations_info": info.to_string() }] });
        assert_eq!(
            failed_validations(&cluster),
            ["host worker-1: has-min-memory failure: too little"]
        );
        assert!(summary(&cluster).contains("1 insufficient"));
    }
}
