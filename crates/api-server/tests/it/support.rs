//! Support levels, operators that can be chosen, bundles.

use serde_json::json;

use crate::harness::{Server, inventory};

#[tokio::test(flavor = "multi_thread")]
async fn features_are_listed_by_version_architecture_and_platform() {
    let server = Server::start().await;
    let path = "/v2/support-levels/features?openshift_version=4.18.7";
    let plain = server.get(path).await.expect(200);
    let features = plain["features"].as_object().unwrap();
    assert_eq!(features.len(), 55);
    assert_eq!(features["LVM"], "supported");
    assert_eq!(features["VSPHERE_INTEGRATION"], "supported");
    let arm = format!("{path}&cpu_architecture=arm64&platform_type=baremetal");
    let arm = server.get(&arm).await.expect(200);
    assert_eq!(arm["features"]["LSO"], "unavailable");
    assert!(arm["features"].get("VSPHERE_INTEGRATION").is_none());
    assert_eq!(
        arm["features"]["PLATFORM_MANAGED_NETWORKING"],
        "unsupported"
    );
    let old = "/v2/support-levels/features?openshift_version=4.9&cpu_architecture=arm64";
    let old = server.get(old).await.expect(200);
    assert_eq!(old["features"]["FULL_ISO"], "unavailable");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_selections_are_refused() {
    let server = Server::start().await;
    for path in ["features", "features/detailed", "architectures"] {
        let path = format!("/v2/support-levels/{path}");
        server.get(&path).await.expect(400);
        server
            .get(&format!("{path}?openshift_version=latest"))
            .await
            .expect(400);
    }
    for more in [
        "cpu_architecture=vax",
        "cpu_architecture=arm64",
        "platform_type=nutanix",
        "platform_type=x",
    ] {
        let path = format!("/v2/support-levels/features/detailed?openshift_version=4.9&{more}");
        server.get(&path).await.expect(400);
        let path = format!("/v2/operators/bundles?openshift_version=4.9&{more}");
        server.get(&path).await.expect(400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn detailed_features_have_reasons_and_dependencies() {
    let server = Server::start().await;
    let path = "/v2/support-levels/features/detailed?openshift_version=4.14&cpu_architecture=arm64";
    let answer = server.get(path).await.expect(200);
    let operators = answer["operators"].as_array().unwrap();
    let odf = operators.iter().find(|one| one["name"] == "odf").unwrap();
    assert_eq!(
        *odf,
        json!({
            "feature-support-level-id": "ODF",
            "support_level": "unavailable",
            "reason": "cpuArchitecture",
            "incompatibilities": ["EXTERNAL_PLATFORM_OCI", "LVM", "SNO"],
            "name": "odf",
            "dependencies": ["LSO"],
        })
    );
    let features = answer["features"].as_array().unwrap();
    assert_eq!((features.len(), operators.len()), (27, 28));
    assert!(features[0].get("name").is_none(), "{}", features[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn architectures_have_levels() {
    let server = Server::start().await;
    let path = "/v2/support-levels/architectures?openshift_version=4.12.0-ec.1";
    assert_eq!(
        server.get(path).await.expect(200),
        json!({ "architectures": {
            "X86_64_ARCHITECTURE": "supported",
            "ARM64_ARCHITECTURE": "supported",
            "S390X_ARCHITECTURE": "tech-preview",
            "PPC64LE_ARCHITECTURE": "tech-preview",
            "MULTIARCH_RELEASE_IMAGE": "tech-preview",
        } })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_are_listed_without_properties() {
    let server = Server::start().await;
    let names = server.get("/v2/supported-operators").await.expect(200);
    let names = names.as_array().unwrap();
    assert_eq!(names.len(), 28);
    assert!(names.contains(&json!("node-feature-discovery")));
    let path = "/v2/supported-operators/odf";
    assert_eq!(server.get(path).await.expect(200), json!([]));
    server.get("/v2/supported-operators/nope").await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn bundles_are_filtered_by_support() {
    let server = Server::start().await;
    let ids = async |query: &str| {
        let list = server
            .get(&format!("/v2/operators/bundles?{query}"))
            .await
            .expect(200);
        let list = list.as_array().unwrap().iter();
        list.map(|one| one["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids("").await, ["virtualization", "openshift-ai"]);
    assert_eq!(ids("openshift_version=4.16").await, ["openshift-ai"]);
    assert_eq!(
        ids("openshift_version=4.18&platform_type=vsphere").await,
        ["openshift-ai"]
    );
    assert_eq!(
        ids("openshift_version=4.18&feature_ids=SNO").await,
        ["openshift-ai"]
    );
    let one = server
        .get("/v2/operators/bundles/openshift-ai")
        .await
        .expect(200);
    assert_eq!(one["optional_operators"], json!(["amd-gpu", "nvidia-gpu"]));
    let one = "/v2/operators/bundles/openshift-ai?feature_ids=SNO";
    assert_eq!(
        server.get(one).await.expect(200)["operators"],
        json!(["lvm", "openshift-ai"])
    );
    server.get("/v2/operators/bundles/nope").await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn platforms_follow_the_hosts() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let path = format!("/v2/clusters/{id}/supported-platforms");
    assert_eq!(server.get(&path).await.expect(200), json!(["none"]));
    let infra_env = server.infra_env(Some(&id)).await;
    let host = server.host(&infra_env, 1).await;
    let mut machine = inventory(1);
    machine["system_vendor"]["manufacturer"] = json!("Nutanix");
    server.reply(&host, "inventory", &machine).await.expect(204);
    assert_eq!(
        server.get(&path).await.expect(200),
        json!(["baremetal", "none", "nutanix", "external"])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn features_in_use_are_recorded() {
    let server = Server::start().await;
    let id = server.cluster(json!({ "tags": "blue" })).await;
    let path = format!("/v2/clusters/{id}");
    let usage = async || {
        let cluster = server.get(&path).await.expect(200);
        let listed = server.get("/v2/clusters").await.expect(200);
        assert_eq!(listed[0]["feature_usage"], cluster["feature_usage"]);
        let text = cluster["feature_usage"].as_str().unwrap();
        serde_json::from_str::<serde_json::Value>(text).unwrap()
    };
    assert_eq!(
        usage().await["Cluster Tags"],
        json!({ "id": "CLUSTER_TAGS", "name": "Cluster Tags" })
    );
    let change = json!({ "tags": "", "olm_operators": [{ "name": "lso" }] });
    server.patch(&path, &change).await.expect(201);
    let now = usage().await;
    assert!(now.get("Cluster Tags").is_none(), "{now}");
    assert_eq!(now["LSO"]["id"], "LSO");
}
