//! Cost of the requests that clients repeat, and the bytes of the records behind them.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::changes;
use crate::bench::client::{LoadClient, load};
use crate::bench::process::{TICKS_PER_SECOND, cpu_ticks, family, percentile};
use crate::http;
use crate::installation::InstallationState;

pub(super) const BASE: &str = "/api/assisted-install/v2";
/// Time of one kind of request.
const DURATION: Duration = Duration::from_secs(5);
const CLIENTS: u32 = 8;
/// Length of a real server's inventory. Units: bytes.
const INVENTORY_BYTES: usize = 60_000;
/// Stands for the name of a client's host.
const HOST_NAME: &str = "host-name";
/// The metric of the first route.
const METRIC: u32 = u32::MAX;
/// Members that are printed have this share of a host's bytes. Units: percent.
const SHOWN_PERCENT: usize = 1;

/// Prints the bytes of a host and the cost of requests about its cluster.
pub(super) fn print(state: &InstallationState) -> Result<()> {
    let target = RequestTarget::find(state)?;
    target.print_bytes();
    println!("Requests of {CLIENTS} clients at a time, CPU for each:");
    println!("  request                      a second  service ms  database ms  p50 ms  p99 ms");
    target.measure("poll", |client, number, _| {
        let path = format!("{}/instructions", target.host(number));
        client.ask("GET", &path, &[], b"", 200).map(drop)
    })?;
    target.measure("inventory, unchanged", |client, number, _| {
        target.reply(client, number, 0)
    })?;
    target.measure("inventory, changed", |client, number, turn| {
        target.reply(client, number, turn + 1)
    })?;
    let cluster = format!("{BASE}/clusters/{}", target.cluster);
    target.measure("cluster", |client, _, _| {
        client.ask("GET", &cluster, &[], b"", 200).map(drop)
    })?;
    let list = format!("{BASE}/clusters");
    target.measure("list of clusters", |client, _, _| {
        client.ask("GET", &list, &[], b"", 200).map(drop)
    })?;
    changes::print(&target)
}

/// The reply to the step that asks for the inventory.
fn reply(inventory: &Value) -> Value {
    json!({
        "step_type": "inventory", "step_id": "inventory-0", "exit_code": 0, "output": inventory.to_string(),
    })
}

/// The subject of the requests.
pub(super) struct RequestTarget {
    pub(super) port: u16,
    service: u32,
    database: u32,
    pub(super) cluster: String,
    hosts: Vec<Value>,
    /// An inventory, with [`HOST_NAME`] and [`METRIC`].
    reply: String,
}

impl RequestTarget {
    /// The first cluster and its hosts.
    fn find(state: &InstallationState) -> Result<Self> {
        let clusters = http::get(&format!("{}{BASE}/clusters", state.api_url))?;
        let cluster = clusters[0]["id"].as_str().context("there is no cluster")?;
        let path = format!("{}{BASE}/clusters/{cluster}", state.api_url);
        let hosts = http::get(&path)?["hosts"].take();
        let hosts: Vec<Value> = serde_json::from_value(hosts)?;
        ensure!(!hosts.is_empty(), "the cluster has no hosts");
        let inventory = hosts[0]["inventory"].as_str().unwrap_or("{}");
        let mut inventory: Value = serde_json::from_str(inventory)?;
        let routes: Vec<Value> = (0..INVENTORY_BYTES / 90)
            .map(|number| {
                let net = format!("10.{}.{}.0/24", number / 256, number % 256);
                json!({ "destination": net, "gateway": "192.0.2.1", "interface": "eth0", "family": 2, "metric": 100 })
            })
            .collect();
        inventory["routes"] = json!(routes);
        inventory["routes"][0]["metric"] = json!(METRIC);
        inventory["hostname"] = json!(HOST_NAME);
        let (_, port) = state.api_url.rsplit_once(':').context("no port")?;
        let pid = |name: &str| state.pids.get(name).copied();
        Ok(Self {
            port: port.trim_end_matches('/').parse()?,
            service: pid(super::API_SERVER).context("the API server does not run")?,
            database: pid("postgres").context("the database does not run")?,
            cluster: cluster.to_owned(),
            hosts,
            reply: reply(&inventory).to_string(),
        })
    }

    /// Path of a client's own host.
    pub(super) fn host(&self, number: u32) -> String {
        let (infra_env, id) = (self.member(number, "infra_env_id"), self.host_id(number));
        format!("{BASE}/infra-envs/{infra_env}/hosts/{id}")
    }

    pub(super) fn host_id(&self, number: u32) -> &str {
        self.member(number, "id")
    }

    fn member(&self, number: u32, name: &str) -> &str {
        let host = &self.hosts[number as usize % self.hosts.len()];
        host[name].as_str().unwrap_or_default()
    }

    /// Sends the host's own inventory, with this memory or with its own. Units: bytes.
    pub(super) fn report_memory(
        &self,
        client: &mut LoadClient,
        number: u32,
        memory: Option<u64>,
    ) -> Result<()> {
        let mut inventory: Value = serde_json::from_str(self.member(number, "inventory"))?;
        if let Some(bytes) = memory {
            inventory["memory"]["physical_bytes"] = json!(bytes);
            inventory["memory"]["usable_bytes"] = json!(bytes);
        }
        self.send(client, number, &reply(&inventory).to_string())
    }

    /// Sends an inventory whose content depends on `turn`.
    fn reply(&self, client: &mut LoadClient, number: u32, turn: u32) -> Result<()> {
        // Printing it for each request would take the cores from the service.
        let name = format!("host-{number}");
        let body = self.reply.replacen(HOST_NAME, &name, 1);
        let body = body.replacen(&METRIC.to_string(), &turn.to_string(), 1);
        self.send(client, number, &body)
    }

    fn send(&self, client: &mut LoadClient, number: u32, body: &str) -> Result<()> {
        let path = format!("{}/instructions", self.host(number));
        let headers = ["Content-Type: application/json"];
        client
            .ask("POST", &path, &headers, body.as_bytes(), 204)
            .map(drop)
    }

    /// CPU time of the service and of the database. Units: ticks.
    fn ticks(&self) -> Result<(u64, u64)> {
        let database = family(self.database).into_iter();
        // A connection's process may end meanwhile.
        let database = database.filter_map(|pid| cpu_ticks(pid).ok()).sum();
        Ok((cpu_ticks(self.service)?, database))
    }

    /// Repeats a request and prints its cost.
    fn measure<F>(&self, name: &str, request: F) -> Result<()>
    where
        F: Fn(&mut LoadClient, u32, u32) -> Result<()> + Sync,
    {
        let durations = Mutex::new(Vec::new());
        let before = self.ticks()?;
        let (count, seconds) = load(self.port, CLIENTS, DURATION, |client, number, turn| {
            let started = Instant::now();
            request(client, number, turn)?;
            if let Ok(mut durations) = durations.lock() {
                durations.push(started.elapsed());
            }
            Ok(())
        })?;
        let after = self.ticks()?;
        let each = |ticks: u64| {
            let ticks = f64::from(u32::try_from(ticks).unwrap_or(u32::MAX));
            ticks / TICKS_PER_SECOND * 1000.0 / f64::from(count.max(1))
        };
        let mut durations = durations.into_inner().unwrap_or_default();
        durations.sort_unstable();
        println!(
            "  {name:<27}  {:>8.0}  {:>10.3}  {:>11.3}  {:>6.2}  {:>6.2}",
            f64::from(count) / seconds,
            each(after.0.saturating_sub(before.0)),
            each(after.1.saturating_sub(before.1)),
            percentile(&durations, 50),
            percentile(&durations, 99),
        );
        Ok(())
    }

    /// Prints the members of a host that take most of its answer.
    fn print_bytes(&self) {
        let mut members: BTreeMap<&str, usize> = BTreeMap::new();
        let all = self.hosts.iter().filter_map(Value::as_object).flatten();
        for (name, value) in all {
            *members.entry(name).or_default() += value.to_string().len();
        }
        let whole: usize = members.values().sum();
        let mut members: Vec<_> = members.into_iter().collect();
        members.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        let count = self.hosts.len();
        println!("Bytes of a host of {count}: {}", whole / count);
        for (name, bytes) in members {
            if bytes * 100 >= whole * SHOWN_PERCENT {
                println!("  {name:<27}  {:>8}", bytes / count);
            }
        }
    }
}
