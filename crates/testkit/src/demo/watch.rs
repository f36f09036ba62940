//! Waits for conditions, and tells what changes meanwhile.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::Value;

use super::client::Client;
use super::console::Console;
use super::machines::Machines;

/// Between two looks.
pub(super) const PAUSE: Duration = Duration::from_millis(500);

/// While a cluster is not ready, what holds it up is told this often.
const HOLD_UP_INTERVAL: Duration = Duration::from_secs(15);

/// A point in time after which waiting is given up.
pub(super) struct Deadline(Instant, Duration);

impl Deadline {
    pub(super) fn new(limit: Duration) -> Self {
        Self(Instant::now() + limit, limit)
    }

    /// Waits a little, or fails when the time is over; `state` says what was still missing.
    pub(super) async fn pause(
        &self,
        pause: Duration,
        state: impl FnOnce() -> String,
    ) -> Result<()> {
        if Instant::now() >= self.0 {
            bail!("still not there after {} s: {}", self.1.as_secs(), state());
        }
        tokio::time::sleep(pause).await;
        Ok(())
    }
}

/// What was last seen of a cluster and its hosts.
pub(super) struct Watch<'a> {
    client: &'a Client,
    console: &'a Console,
    cluster_id: &'a str,
    seen: BTreeMap<String, String>,
    told_hold_up: Instant,
    /// The cluster as last read, with its hosts.
    pub(super) cluster: Value,
}

impl<'a> Watch<'a> {
    pub(super) fn new(client: &'a Client, console: &'a Console, cluster_id: &'a str) -> Self {
        Self {
            client,
            console,
            cluster_id,
            seen: BTreeMap::new(),
            told_hold_up: Instant::now(),
            cluster: Value::Null,
        }
    }

    /// Looks until `done` holds. `done` may fail at once on a state from which there is no way on.
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
            self.tell_changes();
            self.tell_hold_up();
            if done(&self.cluster)? {
                return Ok(());
            }
            let cluster = &self.cluster;
            deadline
                .pause(PAUSE, || {
                    format!("{}\n{}", summary(cluster), held_up_by(cluster).join("\n"))
                })
                .await?;
        }
    }

    fn tell_hold_up(&mut self) {
        let is_held_up = matches!(
            text(&self.cluster, "status"),
            "insufficient" | "pending-for-input"
        );
        if is_held_up && self.told_hold_up.elapsed() >= HOLD_UP_INTERVAL {
            self.told_hold_up = Instant::now();
            self.console.event("held up by:");
            for line in held_up_by(&self.cluster) {
                self.console.detail(line);
            }
        }
    }

    fn tell_changes(&mut self) {
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
            self.tell(
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
        self.tell("cluster", "cluster", status, text(&cluster, "status_info"));
    }

    fn tell(&mut self, key: &str, who: &str, status: String, info: &str) {
        if self.seen.get(key) != Some(&status) {
            let info = if info.is_empty() {
                String::new()
            } else {
                format!(" ({info})")
            };
            self.console
                .event(format!("{who} → {}{info}", status.trim()));
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

/// One line on where a cluster stands.
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
pub(super) fn held_up_by(cluster: &Value) -> Vec<String> {
    let mut lines = failing("cluster", cluster);
    for host in hosts(cluster) {
        lines.extend(failing(
            &format!("host {}", text(host, "requested_hostname")),
            host,
        ));
    }
    lines
}

/// Lines "who: id: message" of the validations of one object that failed, wait or could not be judged.
pub(super) fn failing(who: &str, object: &Value) -> Vec<String> {
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
                "{who}: {} {}: {}",
                text(v, "id"),
                text(v, "status"),
                text(v, "message")
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn validations_that_hold_up_are_listed() {
        let info = json!({ "hardware": [
            { "id": "has-min-memory", "status": "failure", "message": "too little" },
            { "id": "has-inventory", "status": "success", "message": "ok" },
        ] });
        let cluster = json!({ "validations_info": "", "hosts": [
            { "requested_hostname": "worker-1", "status": "insufficient", "validations_info": info.to_string() }] });
        assert_eq!(
            held_up_by(&cluster),
            ["host worker-1: has-min-memory failure: too little"]
        );
        assert!(summary(&cluster).contains("1 insufficient"));
    }
}
