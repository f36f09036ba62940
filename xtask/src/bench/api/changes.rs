//! Delay between a report that changes a host's state and the moments at which clients see the change.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::requests::{BASE, RequestTarget};
use crate::bench::client::{LoadClient, events};
use crate::bench::process::percentile;

/// Changes that are measured: to the state `insufficient` and back.
const CHANGES: u32 = 200;
/// A change that is not visible after this time is lost.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Memory of a host that is insufficient. Units: bytes.
const LITTLE_MEMORY: u64 = 1 << 30;

/// Prints the delays of [`CHANGES`] changes, one after the other, each on another host.
pub(super) fn print(target: &RequestTarget) -> Result<()> {
    let path = format!("{BASE}/events/stream?cluster_id={}", target.cluster);
    let events = updates(target.port, &path)?;
    let mut client = LoadClient::connect(target.port)?;
    let (mut visible, mut streamed) = (Vec::new(), Vec::new());
    for number in 0..CHANGES * 2 {
        let insufficient = number % 2 == 0;
        let sent = Instant::now();
        target.report_memory(
            &mut client,
            number / 2,
            insufficient.then_some(LITTLE_MEMORY),
        )?;
        let host = target.host(number / 2);
        loop {
            let answer = client.ask("GET", &host, &[], b"", 200)?;
            let host: Value = serde_json::from_slice(&answer.body)?;
            if (host["status"] == "insufficient") == insufficient {
                break;
            }
            ensure!(sent.elapsed() < TIMEOUT, "the change is not visible");
        }
        visible.push(sent.elapsed());
        let id = target.host_id(number / 2);
        loop {
            let left = TIMEOUT.saturating_sub(sent.elapsed());
            let (at, event) = events
                .recv_timeout(left)
                .context("no event of the change")?;
            if event["host_id"] == id && event["name"] == "host_status_updated" {
                streamed.push(at - sent);
                break;
            }
        }
    }
    println!("Changes of a host's state are visible after:");
    println!("  to                  p50 ms  p99 ms");
    for (name, mut delays) in [("poll", visible), ("stream", streamed)] {
        delays.sort_unstable();
        let (p50, p99) = (percentile(&delays, 50), percentile(&delays, 99));
        println!("  {name:<18}  {p50:>6.2}  {p99:>6.2}");
    }
    Ok(())
}

/// The events of a stream, with the times of their arrival.
fn updates(port: u16, path: &str) -> Result<Receiver<(Instant, Value)>> {
    let stream = events(port, path)?;
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for event in stream.map_while(Result::ok) {
            if sender.send((Instant::now(), event)).is_err() {
                return;
            }
        }
    });
    Ok(receiver)
}
