//! Hosts: registration, polls, replies, updates, removal.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{AGENT, Server, host_id, inventory};

fn steps(answer: &Value) -> Vec<&str> {
    let list = answer["instructions"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    list.iter()
        .map(|step| step["step_type"].as_str().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn registration_returns_the_next_command() {
    let server = Server::start().await;
    let cluster = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    let id = host_id(1);
    let params = json!({ "host_id": id, "discovery_agent_version": AGENT });
    let answer = server
        .post(&format!("/v2/infra-envs/{infra_env}/hosts"), &params)
        .await
        .expect(201);
    assert_eq!(
        (answer["status"].as_str(), answer["cluster_id"].as_str()),
        (Some("discovering"), Some(&*cluster))
    );
    assert_eq!(answer["requested_hostname"], id);
    let command: Value = serde_json::from_str(
        answer["next_step_runner_command"]["args"][0]
            .as_str()
            .unwrap(),
    )
    .unwrap();
    assert_eq!(
        command,
        json!({ "infra_env_id": infra_env, "host_id": id, "agent_version": AGENT })
    );

    let again = server
        .post(&format!("/v2/infra-envs/{infra_env}/hosts"), &params)
        .await
        .expect(201);
    assert_eq!(again["created_at"], answer["created_at"], "the same host");
    let hosts = server
        .get(&format!("/v2/infra-envs/{infra_env}/hosts/"))
        .await
        .expect(200);
    assert_eq!(hosts.as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn inventory_makes_a_pool_host_known() {
    let server = Server::start().await;
    let infra_env = server.infra_env(None).await;
    let host = server.host(&infra_env, 1).await;
    let answer = server
        .get(&format!("{host}/instructions"))
        .await
        .expect(200);
    assert_eq!(answer["next_instruction_seconds"], 60);
    assert!(steps(&answer).contains(&"inventory"), "{answer}");
    server
        .reply(&host, "inventory", &inventory(1))
        .await
        .expect(204);
    let record = server.get(&host).await.expect(200);
    assert_eq!(
        record["status"], "known-unbound",
        "{}",
        record["status_info"]
    );
    assert_eq!(record["requested_hostname"], "host-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_host_with_too_little_memory_is_insufficient() {
    let server = Server::start().await;
    let cluster = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    let host = server.host(&infra_env, 1).await;
    let mut small = inventory(1);
    small["memory"] = json!({ "physical_bytes": 1_073_741_824, "usable_bytes": 1_073_741_824 });
    server.reply(&host, "inventory", &small).await.expect(204);
    let record = server.get(&host).await.expect(200);
    assert_eq!(record["status"], "insufficient");
    assert!(
        record["validations_info"]
            .as_str()
            .unwrap()
            .contains("has-min-memory")
    );
    let hosts = server
        .get(&format!("/v2/clusters/{cluster}/hosts?status=insufficient"))
        .await
        .expect(200);
    assert_eq!(hosts.as_array().unwrap().len(), 1);
    assert!(
        hosts[0].get("inventory").is_none(),
        "only with with-inventory"
    );
    let hosts = server
        .get(&format!("/v2/clusters/{cluster}/hosts?with-inventory=true"))
        .await
        .expect(200);
    assert!(hosts[0]["inventory"].as_str().unwrap().contains("host-1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_do_not_change_the_record() {
    let server = Server::start().await;
    let cluster = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    let host = server.host(&infra_env, 1).await;
    let now = service::clock::now().timestamp();
    let poll = async |time: i64| {
        let path = format!("{host}/instructions?timestamp={time}");
        server.get(&path).await.expect(200);
    };
    // The first poll sets the clock offset, which starts a refresh.
    poll(now).await;
    let before = server.get(&host).await.expect(200);
    poll(now + 2).await;
    let after = server.get(&host).await.expect(200);
    assert_eq!(after["timestamp"], now + 2);
    assert_ne!(after["checked_in_at"], before["checked_in_at"]);
    assert_eq!(after["updated_at"], before["updated_at"]);
    let server = server.restart().await;
    let kept = server.get(&host).await.expect(200);
    assert_eq!(
        kept["checked_in_at"], after["checked_in_at"],
        "flushed at shutdown"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_keep_the_clock_offset() {
    let server = Server::start().await;
    let infra_env = server.infra_env(None).await;
    let host = server.host(&infra_env, 1).await;
    let host_time = service::clock::now().timestamp() - 500;
    let path = format!("{host}/instructions?timestamp={host_time}");
    server.get(&path).await.expect(200);
    let record = server
        .until("the reply comes a second after the poll", async || {
            server
                .reply(&host, "inventory", &inventory(1))
                .await
                .expect(204);
            let record = server.get(&host).await.expect(200);
            let timestamp = record["timestamp"].as_i64().unwrap();
            if timestamp > host_time {
                Ok(record)
            } else {
                Err(timestamp)
            }
        })
        .await;
    let seen = seconds(&record["checked_in_at"]);
    let offset = seen - record["timestamp"].as_i64().unwrap();
    assert!((499..=501).contains(&offset), "{offset}");
    let server = server.restart().await;
    let kept = server.get(&host).await.expect(200);
    assert_eq!(
        seconds(&kept["checked_in_at"]) - kept["timestamp"].as_i64().unwrap(),
        offset
    );
}

fn seconds(time: &Value) -> i64 {
    let time = chrono::DateTime::parse_from_rfc3339(time.as_str().unwrap());
    time.unwrap().timestamp()
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_disconnect_on_heartbeat_timeout_and_reconnect() {
    let server = Server::with(|settings| {
        settings.host_max_disconnection_time = std::time::Duration::from_millis(500);
    })
    .await;
    let infra_env = server.infra_env(None).await;
    let host = server.host(&infra_env, 1).await;
    server
        .until("the host is disconnected", async || {
            let status = server.get(&host).await.expect(200)["status"].clone();
            if status == "disconnected-unbound" {
                Ok(())
            } else {
                Err(status)
            }
        })
        .await;
    let answer = server
        .get(&format!("{host}/instructions"))
        .await
        .expect(200);
    assert!(steps(&answer).contains(&"inventory"), "{answer}");
    let events = server
        .get("/v2/events?message=disconnected-unbound")
        .await
        .expect(200);
    assert!(!events.as_array().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_replies_are_refused() {
    let server = Server::start().await;
    let infra_env = server.infra_env(None).await;
    let host = server.host(&infra_env, 1).await;
    let path = format!("{host}/instructions");
    let broken = json!({ "step_type": "inventory", "step_id": "inventory-1", "exit_code": 0, "output": "{" });
    server.post(&path, &broken).await.expect(400);
    let unknown =
        json!({ "step_type": "dance", "step_id": "dance-1", "exit_code": 0, "output": "{}" });
    let refused = server.post(&path, &unknown).await.expect(400);
    assert!(
        refused["message"].as_str().unwrap().contains("step_type"),
        "{refused}"
    );
    let failed = json!({ "step_type": "inventory", "step_id": "inventory-1", "exit_code": 1, "error": "no" });
    server.post(&path, &failed).await.expect(204);
    let mut unnamed = json!({ "step_id": "inventory-1", "exit_code": -1, "error": "no" });
    server.post(&path, &unnamed).await.expect(204);
    unnamed["exit_code"] = json!(0);
    server.post(&path, &unnamed).await.expect(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_inventories_are_reported() {
    let server = Server::start().await;
    let cluster = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    let host = server.host(&infra_env, 1).await;
    let path = format!("{host}/instructions");
    let odd = r#"{"hostname":"odd","disks":[{"size_bytes":"large"}]}"#;
    let reason = r#"the inventory cannot be read: invalid type: string "large", expected i64 at line 1 column 48"#;
    let send = async |output: &str, exit_code: i64| {
        let reply = json!({ "step_type": "inventory", "step_id": "inventory-1", "exit_code": exit_code, "output": output });
        server.post(&path, &reply).await
    };
    let has_inventory = async || {
        let host = server.get(&host).await.expect(200);
        let validations: Value =
            serde_json::from_str(host["validations_info"].as_str().unwrap()).unwrap();
        let rows = validations["hardware"].as_array().unwrap();
        let row = rows.iter().find(|row| row["id"] == "has-inventory");
        row.unwrap().clone()
    };
    let events = async || {
        let events = server.get("/v2/events?message=inventory").await.expect(200);
        let texts = events.as_array().unwrap().iter();
        let texts = texts.map(|event| event["message"].as_str().unwrap().to_owned());
        texts.filter(|text| text.contains("cannot be read")).count()
    };
    for _ in 0..3 {
        let refused = send(odd, 0).await.expect(400);
        let message = refused["reason"].as_str().unwrap();
        assert!(message.contains(reason), "{message}");
    }
    let row = has_inventory().await;
    assert_eq!(row["status"], "failure");
    assert!(row["message"].as_str().unwrap().contains(reason), "{row}");
    assert_eq!(events().await, 1, "a repeated reply emits no event");
    let causes = server
        .get(&format!("/v2/clusters/{cluster}/explain"))
        .await
        .expect(200)
        .to_string();
    assert!(causes.contains("cannot be read"), "{causes}");

    send("no dmidecode", 1).await.expect(204);
    let row = has_inventory().await;
    let message = row["message"].as_str().unwrap();
    assert!(message.contains("exit code 1: no dmidecode"), "{message}");

    server
        .reply(&host, "inventory", &inventory(1))
        .await
        .expect(204);
    let row = has_inventory().await;
    assert_eq!(row["message"], "The inventory has been received");
    send(odd, 0).await.expect(400);
    let row = has_inventory().await;
    assert_eq!(row["status"], "success");
    assert!(row["message"].as_str().unwrap().contains(reason), "{row}");
}

#[tokio::test(flavor = "multi_thread")]
async fn users_update_and_delete_hosts() {
    let server = Server::start().await;
    let cluster = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    let host = server.host(&infra_env, 1).await;
    server
        .reply(&host, "inventory", &inventory(1))
        .await
        .expect(204);
    let changed = server
        .patch(
            &host,
            &json!({ "host_name": "alpha", "host_role": "master" }),
        )
        .await
        .expect(201);
    assert_eq!(
        (
            changed["requested_hostname"].as_str(),
            changed["role"].as_str()
        ),
        (Some("alpha"), Some("master"))
    );
    server
        .patch(&host, &json!({ "host_name": "localhost" }))
        .await
        .expect(400);
    server
        .patch(&host, &json!({ "host_role": "king" }))
        .await
        .expect(400);
    server
        .patch(&host, &json!({ "ignition_endpoint_token": "secret-token" }))
        .await
        .expect(201);
    let record = server.get(&host).await;
    assert!(!record.text.contains("secret-token"));
    assert_eq!(record.expect(200)["ignition_endpoint_token_set"], true);
    server.delete(&host).await.expect(204);
    server.get(&host).await.expect(404);
    server
        .get(&format!("{host}/instructions"))
        .await
        .expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_refused_unless_installing() {
    let server = Server::start().await;
    let cluster = server.cluster(json!({})).await;
    let bound = server.infra_env(Some(&cluster)).await;
    let host = server.host(&bound, 1).await;
    let progress = json!({ "current_stage": "Rebooting" });
    server
        .put(&format!("{host}/progress"), &progress)
        .await
        .expect(409);
    server
        .put(
            &format!("{host}/progress"),
            &json!({ "current_stage": "Flying" }),
        )
        .await
        .expect(400);
    let pool = server.infra_env(None).await;
    let host = server.host(&pool, 2).await;
    server
        .put(&format!("{host}/progress"), &progress)
        .await
        .expect(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_with_another_image_takes_the_place_of_its_host() {
    let silence = Duration::from_secs(1);
    let server = Server::with(|settings| settings.host_max_disconnection_time = silence).await;
    let cluster = server.cluster(json!({})).await;
    let (old, new) = (
        server.infra_env(Some(&cluster)).await,
        server.infra_env(Some(&cluster)).await,
    );
    let first = server.host(&old, 1).await;
    let params = json!({ "host_id": host_id(1), "discovery_agent_version": AGENT });
    let path = format!("/v2/infra-envs/{new}/hosts");
    // Statuses after which an agent never asks again must not be sent while the first host may still poll.
    let refused = server.post(&path, &params).await.expect(400);
    let reason = refused["reason"].as_str().unwrap();
    assert!(
        reason.contains(&old) && reason.contains("delete it"),
        "{reason}"
    );
    let registered = async || match server.post(&path, &params).await {
        answer if answer.status == 201 => Ok(answer.body),
        answer => {
            assert_eq!(answer.status, 400, "{}", answer.text);
            Err(answer.text)
        }
    };
    let host = server.until("the first host is silent", registered).await;
    assert_eq!(host["infra_env_id"], new.as_str());
    let instructions = format!("{path}/{}/instructions", host_id(1));
    server.get(&instructions).await.expect(200);
    server.get(&first).await.expect(404);
    let cluster = server.get(&format!("/v2/clusters/{cluster}")).await;
    let hosts = &cluster.expect(200)["hosts"];
    assert_eq!(hosts.as_array().unwrap().len(), 1);
    assert_eq!(hosts[0]["infra_env_id"], new.as_str());
}
