//! Noisy neighbours: hosts that send inventories at every limit, without pause, do not delay the polls of others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use model::steps::StepType;
use reqwest::{Client, Method};
use rules::bounds::{INVENTORY_BYTES, INVENTORY_COUNTS, TEXT_BYTES, output_bytes};
use serde_json::{Value, json};

use crate::harness::{BASE, Server, inventory};

/// Hosts of the neighbour, which send replies without pause.
const HOSTS: u32 = 6;
/// Inventories per host.
const ROUNDS: usize = 3;
/// Polling hosts of others.
const POLLING: u32 = 4;
/// Polls before and after.
const CALM: usize = 20;
/// Latency budget of a new client during the attack and after it.
const BUDGET: Duration = Duration::from_secs(1);

/// An inventory at all limits of counts and length.
fn largest(number: u32, round: usize) -> Value {
    let limit = |name: &str| {
        let mut counts = INVENTORY_COUNTS.iter();
        counts.find(|count| count.name == name).unwrap().limit
    };
    let mut largest = inventory(number);
    let disk = |at: usize| {
        json!({
            "id": format!("/dev/disk/by-id/{at}"), "name": format!("sd{at}"), "path": format!("/dev/sd{at}"),
            "drive_type": "SSD", "size_bytes": 500_000_000_000_u64 + at as u64,
        })
    };
    let nics = limit("interfaces of an inventory");
    let addresses = limit("addresses of an inventory") / nics;
    let nic = |at: usize| {
        let address = |n: usize| format!("10.{}.{}.{}/8", at / 256, at % 256, n + 1);
        let mac = format!("52:54:{number:02x}:00:{:02x}:{:02x}", at / 256, at % 256);
        json!({
            "name": format!("eth{at}"), "mac_address": mac, "has_carrier": true,
            "ipv4_addresses": (0..addresses).map(address).collect::<Vec<_>>(),
        })
    };
    let route = |at: usize| {
        let destination = format!("10.{}.{}.0", at / 256, at % 256);
        json!({ "destination": destination, "gateway": "10.0.0.1", "interface": "eth0", "family": 2 })
    };
    let all = |count, entry: &dyn Fn(usize) -> Value| (0..count).map(entry).collect::<Value>();
    largest["disks"] = all(limit("disks of an inventory"), &disk);
    largest["interfaces"] = all(nics, &nic);
    largest["routes"] = all(limit("routes of an inventory"), &route);
    largest["gpus"] = all(
        limit("GPUs of an inventory"),
        &|at| json!({ "name": at.to_string() }),
    );
    let flag = |at: usize| json!(format!("flag{at}"));
    largest["cpu"]["flags"] = all(limit("CPU flags of an inventory"), &flag);
    // Each differs from the last one, or it would be skipped as repeated.
    largest["hostname"] = json!(format!("neighbour-{number}-{round}"));
    fill(&mut largest);
    largest
}

/// Adds texts to the disks until the inventory has the maximum length.
fn fill(inventory: &mut Value) {
    let member = r#","smart":"""#.len();
    let mut remaining = INVENTORY_BYTES - inventory.to_string().len();
    for at in 0.. {
        let text = TEXT_BYTES.min(remaining.saturating_sub(member));
        if text == 0 {
            return;
        }
        inventory["disks"][at]["smart"] = json!("x".repeat(text));
        remaining -= member + text;
    }
}

fn instructions(server: &Server, host: &str) -> String {
    format!("{}{BASE}{host}/instructions", server.url)
}

fn client() -> Client {
    service::http_client(None, false).unwrap()
}

fn reply(inventory: &Value) -> Vec<u8> {
    json!({
        "step_type": "inventory", "step_id": "inventory-00000000", "exit_code": 0, "output": inventory.to_string(),
    })
    .to_string()
    .into_bytes()
}

/// Sends the bodies in sequence; returns the number of accepted ones.
async fn attack(url: &str, bodies: Vec<Vec<u8>>) -> usize {
    let client = client();
    let mut accepted = 0;
    for body in bodies {
        let request = client.request(Method::POST, url).body(body);
        let request = request.header("content-type", "application/json");
        let answer = request.send().await.unwrap();
        // Rejections by the admission limit are expected.
        accepted += usize::from(answer.status() == 204);
    }
    accepted
}

/// Polls the hosts round robin, each on a new connection, until `enough`; returns the latencies, sorted.
async fn polls(urls: &[String], enough: impl Fn(usize) -> bool) -> Vec<Duration> {
    let mut latencies = Vec::new();
    for url in urls.iter().cycle() {
        let client = client();
        let started = Instant::now();
        let answer = client.get(url).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        answer.bytes().await.unwrap();
        latencies.push(started.elapsed());
        if enough(latencies.len()) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    latencies.sort_unstable();
    latencies
}

/// Runs a client on its own runtime, so that only the server is measured.
fn isolated<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(work)
}

#[track_caller]
#[expect(
    clippy::print_stdout,
    reason = "the figures of a run, shown with --nocapture"
)]
fn assert_quick(when: &str, latencies: &[Duration]) {
    let (p90, longest) = (
        latencies[latencies.len() * 9 / 10],
        latencies[latencies.len() - 1],
    );
    println!(
        "{when}: {} polls, p90 {p90:?}, longest {longest:?}",
        latencies.len()
    );
    // Not the maximum, which depends on the other tests on the machine; p99 is the maximum of a hundred polls and fewer.
    assert!(p90 <= BUDGET, "{when}: p90 {p90:?}, longest {longest:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn largest_inventories_do_not_delay_polls() {
    assert_eq!(output_bytes(StepType::Inventory), INVENTORY_BYTES);
    let server = Server::start().await;
    let (mut polled, mut attacked) = (Vec::new(), Vec::new());
    let cluster = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    for number in 1..=POLLING {
        let host = server.host(&infra_env, number).await;
        let found = inventory(number);
        server.reply(&host, "inventory", &found).await.expect(204);
        polled.push(instructions(&server, &host));
    }
    let cluster = server.cluster(json!({ "name": "neighbour" })).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    for number in POLLING + 1..=POLLING + HOSTS {
        let host = server.host(&infra_env, number).await;
        let rounds = (0..ROUNDS).map(|round| largest(number, round));
        let bodies: Vec<_> = rounds.map(|found| reply(&found)).collect();
        attacked.push((instructions(&server, &host), bodies));
    }
    let is_over = AtomicBool::new(false);
    let (calm, during, after, accepted) = thread::scope(|scope| {
        let calmly = || isolated(polls(&polled, |count| count == CALM));
        let calm = scope.spawn(calmly).join().unwrap();
        let polling = scope.spawn(|| isolated(polls(&polled, |_| is_over.load(Ordering::Relaxed))));
        let attacks: Vec<_> = attacked
            .into_iter()
            .map(|(url, bodies)| scope.spawn(move || isolated(attack(&url, bodies))))
            .collect();
        let attacks = attacks.into_iter().map(|attack| attack.join().unwrap());
        let accepted: usize = attacks.sum();
        is_over.store(true, Ordering::Relaxed);
        let during = polling.join().unwrap();
        let after = scope.spawn(calmly).join().unwrap();
        (calm, during, after, accepted)
    });
    assert!(accepted >= ROUNDS, "{accepted}: nothing was measured");
    println!("{accepted} inventories accepted");
    assert_quick("before", &calm);
    assert_quick("during", &during);
    assert_quick("after", &after);
}
