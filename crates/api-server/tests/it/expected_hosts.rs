//! Expected hosts: the list, its comparison with registered hosts, and machines that share an id.

use serde_json::{Value, json};

use crate::harness::{Server, host_id, inventory, merged};

async fn put(server: &Server, infra_env: &str, hosts: &Value) -> Value {
    let path = format!("/v2/infra-envs/{infra_env}/expected-hosts");
    server
        .put(&path, &json!({ "hosts": hosts }))
        .await
        .expect(200)
}

fn states(list: &Value) -> Vec<&str> {
    let hosts = list["hosts"].as_array().unwrap();
    hosts
        .iter()
        .map(|one| one["state"].as_str().unwrap())
        .collect()
}

/// A validation of a host.
fn validation(host: &Value, id: &str) -> Option<Value> {
    let info: Value = serde_json::from_str(host["validations_info"].as_str().unwrap()).unwrap();
    let mut all = info
        .as_object()
        .unwrap()
        .values()
        .flat_map(|list| list.as_array().unwrap());
    all.find(|one| one["id"] == id).cloned()
}

#[tokio::test(flavor = "multi_thread")]
async fn registering_hosts_take_their_settings_over() {
    let server = Server::start().await;
    let cluster = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    let path = format!("/v2/infra-envs/{infra_env}/expected-hosts");
    server.get(&path).await.expect(404);
    server.delete(&path).await.expect(404);
    let list = put(
        &server,
        &infra_env,
        &json!([
            { "mac_addresses": ["52-54-00-AA-00-01"], "name": "alpha", "role": "master",
              "installation_disk": { "device_name": "/dev/sda", "min_size_gigabytes": 100 } },
            { "serial_number": "S9", "name": "omega" },
        ]),
    )
    .await;
    assert_eq!(states(&list), ["missing", "missing"]);

    let host = server.host(&infra_env, 1).await;
    server
        .reply(&host, "inventory", &inventory(1))
        .await
        .expect(204);
    let record = server.get(&host).await.expect(200);
    assert_eq!(record["requested_hostname"], "alpha");
    assert_eq!(record["role"], "master");
    assert_eq!(record["installation_disk_path"], "/dev/sda");
    let found = validation(&record, "matches-expected-host").unwrap();
    assert_eq!(found["status"], "success", "{found}");

    let stranger = server.host(&infra_env, 2).await;
    server
        .reply(&stranger, "inventory", &inventory(2))
        .await
        .expect(204);
    let record = server.get(&stranger).await.expect(200);
    let found = validation(&record, "matches-expected-host").unwrap();
    assert_eq!(found["status"], "failure");
    assert!(
        found["message"]
            .as_str()
            .unwrap()
            .contains("serial number S2"),
        "{found}"
    );

    let list = server.get(&path).await.expect(200);
    assert_eq!(states(&list), ["present", "missing", "unexpected"]);
    assert_eq!(list["hosts"][2]["host_id"], json!(host_id(2)));

    // A new list is compared with hosts that are registered.
    let list = put(
        &server,
        &infra_env,
        &json!([
            { "serial_number": "S2", "name": "beta" },
            { "mac_addresses": ["52:54:00:aa:00:01", "52:54:00:aa:00:77"], "name": "alpha" },
        ]),
    )
    .await;
    assert_eq!(states(&list), ["present", "present"]);
    assert_eq!(list["hosts"][0]["host_name"], "beta");
    assert_eq!(list["hosts"][1]["differences"].as_array().unwrap().len(), 1);

    server.delete(&path).await.expect(204);
    for host in [&host, &stranger] {
        let record = server.get(host).await.expect(200);
        assert_eq!(validation(&record, "matches-expected-host"), None);
        assert!(record.get("expectation").is_none(), "{record}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_lists_are_refused() {
    let server = Server::start().await;
    let infra_env = server.infra_env(None).await;
    let path = format!("/v2/infra-envs/{infra_env}/expected-hosts");
    for (hosts, part) in [
        (json!([{ "name": "alpha" }]), "identifies no machine"),
        (json!([{ "mac_addresses": ["x"] }]), "is not a MAC address"),
        (
            json!([{ "serial_number": "S1" }, { "serial_number": "S1" }]),
            "each machine has its own",
        ),
    ] {
        let refused = server
            .put(&path, &json!({ "hosts": hosts }))
            .await
            .expect(400);
        assert!(
            refused["reason"].as_str().unwrap().contains(part),
            "{refused}"
        );
    }
    let unknown = json!({ "hosts": [{ "serial": "S1" }] });
    server.put(&path, &unknown).await.expect(400);
    let unknown = "/v2/infra-envs/00000000-0000-4000-8000-000000000099/expected-hosts";
    server
        .put(unknown, &json!({ "hosts": [] }))
        .await
        .expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_machines_with_one_id_are_named_with_their_macs() {
    let server = Server::start().await;
    let cluster = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    let host = server.host(&infra_env, 1).await;
    let other = merged(
        inventory(1),
        json!({ "interfaces": inventory(7)["interfaces"] }),
    );
    for machine in [&inventory(1), &other] {
        server.reply(&host, "inventory", machine).await.expect(204);
        let record = server.get(&host).await.expect(200);
        assert_eq!(
            validation(&record, "host-id-unique"),
            None,
            "a card may be replaced"
        );
    }
    server
        .reply(&host, "inventory", &inventory(1))
        .await
        .expect(204);
    let record = server.get(&host).await.expect(200);
    let found = validation(&record, "host-id-unique").unwrap();
    assert_eq!(found["status"], "failure");
    let message = found["message"].as_str().unwrap();
    for mac in ["52:54:00:aa:00:01", "52:54:00:aa:00:07"] {
        assert!(message.contains(mac), "{message}");
    }
    let info = record["status_info"].as_str().unwrap();
    assert!(info.contains("is used by two machines"), "{info}");
}
