//! Explanations: causes of one cluster, and pages of everything that is not ready.

use serde_json::{Value, json};

use crate::harness::{Server, inventory, merged};

fn ids(explanation: &Value) -> Vec<&str> {
    let causes = explanation["causes"].as_array().unwrap();
    causes
        .iter()
        .map(|cause| cause["id"].as_str().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn causes_have_observed_and_required_values_and_a_fix() {
    let server = Server::start().await;
    let cluster = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    let host = server.host(&infra_env, 1).await;
    let small = json!({ "cpu": { "count": 1, "architecture": "x86_64" } });
    let small = merged(inventory(1), small);
    server.reply(&host, "inventory", &small).await.expect(204);

    let path = format!("/v2/clusters/{cluster}/explain");
    let explanation = server.get(&path).await.expect(200);
    assert_eq!(explanation["subject"]["name"], "demo");
    assert_eq!(explanation["outcome"], "not-ready");
    let found = ids(&explanation);
    let position = |id: &str| found.iter().position(|one| *one == id);
    assert!(
        position("api-vips-defined") < position("has-min-cpu-cores"),
        "{found:?}"
    );
    assert!(
        position("has-min-cpu-cores") < position("all-hosts-are-ready-to-install"),
        "{found:?}"
    );
    let cause = &explanation["causes"][position("has-min-cpu-cores").unwrap()];
    assert_eq!(cause["subject"]["kind"], "host");
    assert_eq!(cause["subject"]["name"], "host-1");
    assert_eq!(cause["subject"]["infra_env_id"], json!(infra_env));
    assert_eq!(cause["observed"], "1 CPU cores");
    assert_eq!(cause["required"], "2 CPU cores");
    assert_eq!(cause["fix"], "Add CPU cores, or leave the host out.");
    assert_ne!(cause["since"], "0001-01-01T00:00:00.000Z");

    let unknown = "/v2/clusters/00000000-0000-4000-8000-000000000099/explain";
    server.get(unknown).await.expect(404);
}

/// A validation that passed before fails since its event, not since the status.
#[tokio::test(flavor = "multi_thread")]
async fn failures_begin_with_their_event() {
    let server = Server::start().await;
    let cluster = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    let host = server.host(&infra_env, 1).await;
    server
        .reply(&host, "inventory", &inventory(1))
        .await
        .expect(204);
    let lost = merged(inventory(1), json!({ "routes": [] }));
    server.reply(&host, "inventory", &lost).await.expect(204);
    let events = server
        .get(&format!("/v2/events?cluster_id={cluster}"))
        .await
        .expect(200);
    let is_failure = |event: &&Value| {
        event["name"] == "host_validation_failed"
            && event["props"]
                .as_str()
                .is_some_and(|props| props.contains("has-default-route"))
    };
    let event = events.as_array().unwrap().iter().find(is_failure).unwrap();
    let path = format!("/v2/clusters/{cluster}/explain");
    let explanation = server.get(&path).await.expect(200);
    let causes = explanation["causes"].as_array().unwrap();
    let cause = causes
        .iter()
        .find(|one| one["id"] == "has-default-route")
        .unwrap();
    assert_eq!(cause["since"], event["event_time"]);
}

// limit: subjects of a page of explanations
#[tokio::test(flavor = "multi_thread")]
async fn all_problems_are_listed_in_pages() {
    let server = Server::start().await;
    let mut expected = Vec::new();
    for _ in 0..3 {
        expected.push(server.cluster(json!({})).await);
    }
    expected.sort();
    let pool = server.infra_env(None).await;
    let host = server.host(&pool, 1).await;
    let unnamed = merged(inventory(1), json!({ "hostname": "localhost" }));
    server.reply(&host, "inventory", &unnamed).await.expect(204);
    expected.push(pool);

    let mut found = Vec::new();
    let mut after = String::new();
    loop {
        let page = server
            .get(&format!("/v2/explain?limit=2{after}"))
            .await
            .expect(200);
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2);
        found.extend(
            items
                .iter()
                .map(|one| one["subject"]["id"].as_str().unwrap().to_owned()),
        );
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(found, expected);
    assert_eq!(server.get("/v2/explain?limit=100").await.status, 200);
    for wrong in ["limit=101", "limit=0", "after=x"] {
        assert_eq!(
            server.get(&format!("/v2/explain?{wrong}")).await.status,
            400,
            "{wrong}"
        );
    }
}
