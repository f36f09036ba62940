//! Snapshots of the API's state, which must not be lost.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::{ApiClient, Stage};

/// Everything that was visible at one time.
#[derive(Debug, Default)]
pub struct ApiSnapshot {
    clusters: BTreeMap<String, Stage>,
    /// Completed stages of each host, by id.
    hosts: BTreeMap<String, usize>,
    infra_envs: BTreeSet<String>,
    events: BTreeSet<String>,
}

impl ApiSnapshot {
    /// Reads everything.
    ///
    /// Errors: an unsuccessful response.
    pub async fn take(api: &ApiClient) -> Result<Self> {
        let mut snapshot = Self::default();
        for infra_env in list(&api.get("/v2/infra-envs").await?) {
            snapshot.infra_envs.insert(id(infra_env)?);
        }
        for summary in list(&api.get("/v2/clusters").await?) {
            let id = id(summary)?;
            let cluster = api.get(&format!("/v2/clusters/{id}")).await?;
            for host in list(&cluster["hosts"]) {
                snapshot.hosts.insert(self::id(host)?, stages(host));
            }
            let events = api
                .get(&format!("/v2/events?cluster_id={id}&limit=-1"))
                .await?;
            for event in list(&events) {
                let text = format!("{} {}", event["event_time"], event["message"]);
                snapshot.events.insert(text);
            }
            snapshot.clusters.insert(id, Stage::of(&cluster)?);
        }
        Ok(snapshot)
    }

    /// Compares with the current state: nothing may be missing or reverted.
    ///
    /// Errors: the first difference.
    pub async fn holds(&self, api: &ApiClient) -> Result<()> {
        let now = Self::take(api).await?;
        for (id, stage) in &self.clusters {
            let now = now.clusters.get(id);
            let now = now.with_context(|| format!("cluster {id} is lost"))?;
            ensure!(
                now >= stage,
                "cluster {id} was {stage:?} and is {now:?} again"
            );
        }
        for (id, stages) in &self.hosts {
            let now = now.hosts.get(id);
            let now = now.with_context(|| format!("host {id} is lost"))?;
            ensure!(
                now >= stages,
                "host {id} had {stages} stages behind it and has {now}"
            );
        }
        lost("infra-envs", &self.infra_envs, &now.infra_envs)?;
        lost("events", &self.events, &now.events)
    }
}

fn lost(what: &str, before: &BTreeSet<String>, now: &BTreeSet<String>) -> Result<()> {
    let lost: Vec<_> = before.difference(now).collect();
    ensure!(lost.is_empty(), "{what} are lost: {lost:?}");
    Ok(())
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn id(value: &Value) -> Result<String> {
    let id = value["id"].as_str();
    Ok(id.with_context(|| format!("no id in {value}"))?.to_owned())
}

fn stages(host: &Value) -> usize {
    let current = &host["progress"]["current_stage"];
    list(&host["progress_stages"])
        .position(|stage| stage == current)
        .map_or(0, |index| index + 1)
}
