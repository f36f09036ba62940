//! Scaling of one cluster: constant cost of registrations, and coalesced refreshes.

use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use serde_json::json;

use crate::harness::{AGENT, Server, host_id, inventory};

/// Measurements at least, and at most: the minimum is the cost, the rest is noise of the machine.
const LEAST: u32 = 20;
const MEASUREMENTS: u32 = 200;

/// Concurrent registrations outside measurements: they share the pauses between refreshes.
const CONCURRENCY: usize = 32;

/// Registers a host, with retries; returns the latency of the successful attempt.
async fn register(server: &Server, infra_env: &str, number: u32) -> Duration {
    let params = json!({ "host_id": host_id(number), "discovery_agent_version": AGENT });
    loop {
        let started = Instant::now();
        let path = format!("/v2/infra-envs/{infra_env}/hosts");
        let answer = server.post(&path, &params).await;
        // A refresh of thousands of hosts in a debug build may exceed the request's timeout: agents retry.
        if answer.status == 503 {
            continue;
        }
        answer.expect(201);
        return started.elapsed();
    }
}

/// Cost of the last registrations of a cluster, relative to the 50th of another one, as soon as it is at most `wanted`. They
/// alternate, so that other load of the machine counts for both; a cost is the least of all measurements.
async fn ratio(last: u32, wanted: f64) -> f64 {
    let server = Server::start().await;
    let infra_env = async || {
        let cluster = server.cluster(json!({})).await;
        server.infra_env(Some(&cluster)).await
    };
    let (small, large) = (infra_env().await, infra_env().await);
    let fill = async |infra_env: &str, numbers: std::ops::Range<u32>| {
        let registering = numbers.map(|number| register(&server, infra_env, number));
        let done = stream::iter(registering).buffer_unordered(CONCURRENCY);
        done.for_each(async |_| ()).await;
    };
    let (first, nearly) = (last + 1, last - MEASUREMENTS);
    fill(&small, first..first + 50).await;
    fill(&large, 1..nearly).await;
    let (mut few, mut many) = (f64::MAX, f64::MAX);
    for number in 0..MEASUREMENTS {
        let of_small = register(&server, &small, first + 50 + number).await;
        few = few.min(of_small.as_secs_f64());
        let of_large = register(&server, &large, nearly + number).await;
        many = many.min(of_large.as_secs_f64());
        if number >= LEAST && many <= few * wanted {
            break;
        }
    }
    many / few
}

// A linear cost had a ratio of 8 and more, however often it was measured.

#[tokio::test(flavor = "multi_thread")]
async fn registration_cost_does_not_grow_with_the_cluster() {
    let ratio = ratio(500, 3.0).await;
    assert!(ratio <= 3.0, "{ratio}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: registers 5000 hosts, run with --full"]
async fn the_5000th_registration_costs_at_most_half_more_than_the_50th() {
    let ratio = ratio(5000, 1.5).await;
    assert!(ratio <= 1.5, "{ratio}");
}

#[tokio::test(flavor = "multi_thread")]
async fn registrations_are_followed_by_a_refresh() {
    let server = Server::start().await;
    let cluster = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    let host = server.host(&infra_env, 1).await;
    let steps = server
        .get(&format!("{host}/instructions"))
        .await
        .expect(200);
    assert_eq!(steps["instructions"][0]["step_type"], "inventory");
    server
        .until("the host has validations", async || {
            let found = server.get(&host).await.expect(200);
            let validations = found["validations_info"].as_str().unwrap_or_default();
            if validations.is_empty() {
                Err(found)
            } else {
                Ok(())
            }
        })
        .await;
    // The response to a reply waits for its refresh.
    server
        .reply(&host, "inventory", &inventory(1))
        .await
        .expect(204);
    let known = server.get(&host).await.expect(200);
    assert_ne!(known["status"], "discovering");
}

// limit: hosts of a cluster
#[tokio::test]
async fn host_limit_of_a_cluster_is_enforced() {
    let server = Server::with(|settings| settings.max_hosts_per_cluster = 2).await;
    let cluster = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    let first = server.host(&infra_env, 1).await;
    server.host(&infra_env, 2).await;
    assert_refused(&server, &infra_env, "MAX_HOSTS_PER_CLUSTER").await;
    // Re-registrations are accepted, and a deletion frees capacity.
    server.host(&infra_env, 2).await;
    server.delete(&first).await.expect(204);
    server.host(&infra_env, 3).await;
}

// limit: hosts of an infra-env
#[tokio::test]
async fn host_limit_of_an_infra_env_is_enforced() {
    let server = Server::with(|settings| settings.max_hosts_per_infra_env = 2).await;
    let infra_env = server.infra_env(None).await;
    let first = server.host(&infra_env, 1).await;
    server.host(&infra_env, 2).await;
    assert_refused(&server, &infra_env, "MAX_HOSTS_PER_INFRA_ENV").await;
    server.host(&infra_env, 2).await;
    server.delete(&first).await.expect(204);
    server.host(&infra_env, 3).await;
}

/// Asserts 400 above the limit: agents retry after it, but not after 401, 403, 404 or 409.
async fn assert_refused(server: &Server, infra_env: &str, setting: &str) {
    let params = json!({ "host_id": host_id(3), "discovery_agent_version": AGENT });
    let path = format!("/v2/infra-envs/{infra_env}/hosts");
    let refused = server.post(&path, &params).await;
    assert!(refused.text.contains(setting), "{}", refused.text);
    refused.expect(400);
}
