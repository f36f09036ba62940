//! Operators of clusters: choice, bundles, dependencies, refusals.

use serde_json::{Value, json};

use crate::harness::{Server, cluster_params, merged};
use crate::installation::{ready_as, reply_until};

/// Names of a cluster's operators; those that are only needed by others have a star.
fn names(cluster: &Value) -> Vec<String> {
    let operators = cluster["monitored_operators"].as_array().unwrap().iter();
    let name = |one: &Value| {
        let star = if one["dependency_only"] == true {
            "*"
        } else {
            ""
        };
        format!("{}{star}", one["name"].as_str().unwrap())
    };
    operators.map(name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_are_created_with_operators_and_bundles() {
    let server = Server::start().await;
    let more = json!({
        "olm_operators": [{ "name": "mtv" }],
        "operator_bundles": [{ "id": "openshift-ai", "optional_operators": ["amd-gpu"] }],
    });
    let params = merged(cluster_params(), more);
    let cluster = server.post("/v2/clusters", &params).await.expect(201);
    assert_eq!(
        names(&cluster),
        [
            "console",
            "authorino",
            "odf",
            "openshift-ai",
            "pipelines",
            "serverless",
            "servicemesh",
            "amd-gpu",
            "mtv",
            "lso*",
            "node-feature-discovery*",
            "kmm*",
            "cnv*",
        ]
    );
    assert_eq!(
        cluster["operator_bundles"],
        json!([{ "id": "openshift-ai", "optional_operators": ["amd-gpu"] }])
    );
    let odf = &cluster["monitored_operators"][2];
    assert_eq!(odf["operator_type"], "olm");
    assert_eq!(odf["subscription_name"], "odf-operator");
    assert_eq!(odf["source_bundles"], json!(["openshift-ai"]));
    let id = cluster["id"].as_str().unwrap();
    let path = format!("/v2/clusters/{id}/monitored-operators?operator_name=cnv");
    let cnv = server.get(&path).await.expect(200);
    assert_eq!(cnv[0]["timeout_seconds"], 3600);
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_replace_the_operators() {
    let server = Server::start().await;
    let id = server
        .cluster(json!({ "olm_operators": [{ "name": "odf" }] }))
        .await;
    let path = format!("/v2/clusters/{id}");
    let cluster = server
        .patch(&path, &json!({ "name": "other" }))
        .await
        .expect(201);
    assert_eq!(names(&cluster), ["console", "odf", "lso*"]);
    let change = json!({ "olm_operators": [{ "name": "lso" }], "operator_bundles": [] });
    let cluster = server.patch(&path, &change).await.expect(201);
    assert_eq!(names(&cluster), ["console", "lso"]);
    let change = json!({ "olm_operators": [] });
    let cluster = server.patch(&path, &change).await.expect(201);
    assert_eq!(names(&cluster), ["console"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_that_do_not_fit_are_refused() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let path = format!("/v2/clusters/{id}");
    for (change, text) in [
        (
            json!({ "olm_operators": [{ "name": "nope" }] }),
            "supported-operators",
        ),
        (
            json!({ "operator_bundles": [{ "id": "nope" }] }),
            "virtualization",
        ),
        (
            json!({ "olm_operators": [{ "name": "lvm" }, { "name": "odf" }] }),
            "exclude each other",
        ),
    ] {
        let error = server.patch(&path, &change).await.expect(400);
        assert!(error["reason"].as_str().unwrap().contains(text), "{error}");
    }
    let single = json!({ "control_plane_count": 1, "olm_operators": [{ "name": "odf" }] });
    let params = merged(cluster_params(), single);
    server.post("/v2/clusters", &params).await.expect(400);
    let cluster = server.get(&path).await.expect(200);
    assert_eq!(names(&cluster), ["console"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preparation_adds_the_manifests_of_operators() {
    let server = Server::start().await;
    let more = json!({ "olm_operators": [{ "name": "nmstate" }] });
    let (id, host) = ready_as(&server, 1, more).await;
    let path = format!("/v2/clusters/{id}");
    let install = format!("{path}/actions/install");
    server.post(&install, &json!({})).await.expect(202);
    reply_until(&server, &host, "installing").await;
    let file = format!("{path}/downloads/files?file_name=custom_manifests.json");
    let custom = server.get(&file).await.expect(200);
    assert_eq!(custom[0]["Name"], "nmstate");
    let list = format!("{path}/manifests?include_system_generated=true");
    let list = server.get(&list).await.expect(200);
    let names: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["manifest_source"] == "system")
        .map(|one| one["file_name"].as_str().unwrap())
        .collect();
    for kind in ["namespace", "operatorgroup", "subscription"] {
        let name = format!("50_nmstate_{kind}.yaml");
        assert!(names.contains(&name.as_str()), "{name}: {names:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_report_sets_its_time_and_is_an_event() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let path = format!("/v2/clusters/{id}/monitored-operators");
    let reported = async |report: Value| {
        server.put(&path, &report).await.expect(200);
        server.get(&path).await.expect(200)[0].clone()
    };
    let report = json!({ "name": "console", "status": "progressing", "status_info": "1 of 2 replicas", "version": "4.18.7" });
    let first = reported(report.clone()).await;
    let second = reported(report).await;
    assert!(first["status_updated_at"].as_str() < second["status_updated_at"].as_str());
    // Members that a report leaves out stay.
    let third = reported(json!({ "name": "console", "status": "available" })).await;
    for (member, text) in [
        ("status", "available"),
        ("status_info", "1 of 2 replicas"),
        ("version", "4.18.7"),
    ] {
        assert_eq!(third[member], text);
    }
    let events = format!("/v2/events?cluster_id={id}");
    let events = server.get(&events).await.expect(200);
    let events = events.as_array().unwrap().iter();
    let messages: Vec<&str> = events
        .filter(|event| event["name"] == "cluster_operator_status")
        .map(|event| event["message"].as_str().unwrap())
        .collect();
    let progressing = "Operator console status: progressing message: 1 of 2 replicas";
    let available = "Operator console status: available message: ";
    assert_eq!(messages, [progressing, progressing, available]);
}
