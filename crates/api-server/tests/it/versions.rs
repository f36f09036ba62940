//! Versions under both spellings, components, defaults.

use api_server::settings::{ManagedDomains, PlatformVersions, ReleaseSources};
use serde_json::{Value, json};
use service::settings::Setting as _;

use crate::harness::{AGENT, Server};

#[tokio::test(flavor = "multi_thread")]
async fn versions_are_listed_under_every_path() {
    let server = Server::start().await;
    let versions = server.get("/v2/openshift-versions").await.expect(200);
    assert_eq!(
        versions["4.18.7"],
        json!({ "display_name": "4.18.7", "support_level": "production", "default": true, "cpu_architectures": ["x86_64"] })
    );
    assert_eq!(versions["4.19.0-ec.2"]["support_level"], "beta");
    for path in ["/v2/platform-versions", "/v2/offline-openshift-versions"] {
        assert_eq!(server.get(path).await.expect(200), versions);
    }
    let narrowed = server
        .get("/v2/openshift-versions?version=4.19")
        .await
        .expect(200);
    assert_eq!(narrowed.as_object().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn platform_versions_override_the_default() {
    let server = Server::with(|settings| {
        let text = r#"{"4.18":{"cpu_architectures":["x86_64"],"display_name":"4.18.7","support_level":"production","default":true},
            "4.99":{"cpu_architectures":["x86_64"],"display_name":"4.99.1","support_level":"production"}}"#;
        settings.platform_versions = PlatformVersions::parse(text).unwrap();
    })
    .await;
    let versions = server.get("/v2/platform-versions").await.expect(200);
    let defaults: Vec<_> = versions
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, one)| one["default"] == true)
        .collect();
    assert_eq!((defaults.len(), defaults[0].0.as_str()), (1, "4.18"));
    assert_eq!(versions["4.99"], Value::Null, "no release image");
}

#[tokio::test(flavor = "multi_thread")]
async fn release_sources_and_managed_domains_are_those_of_the_settings() {
    let sources = json!([{
        "openshift_version": "4.18", "multi_cpu_architectures": ["x86_64", "arm64"],
        "upgrade_channels": [{ "cpu_architecture": "x86_64", "channels": ["stable", "eus"] }],
    }]);
    let server = Server::with(|settings| {
        settings.release_sources = ReleaseSources::parse(&sources.to_string()).unwrap();
        settings.base_dns_domains = ManagedDomains::parse("lab.example.com:Z1/route53").unwrap();
    })
    .await;
    assert_eq!(server.get("/v2/release-sources").await.expect(200), sources);
    assert_eq!(
        server.get("/v2/domains").await.expect(200),
        json!([{ "domain": "lab.example.com", "provider": "route53" }])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn components_and_defaults_are_listed() {
    let server = Server::start().await;
    let components = server.get("/v2/component-versions").await.expect(200);
    assert_eq!(components["versions"]["discovery-agent"], AGENT);
    let defaults = server.get("/v2/clusters/default-config").await.expect(200);
    assert_eq!(defaults["cluster_networks_ipv4"][0]["host_prefix"], 23);
    assert_eq!(server.get("/v2/domains").await.expect(200), json!([]));
    assert_eq!(
        server.get("/v2/release-sources").await.expect(200),
        json!([])
    );
    let id = server.cluster(json!({})).await;
    let needs = server
        .get(&format!("/v2/clusters/{id}/preflight-requirements"))
        .await
        .expect(200);
    assert_eq!(needs["ocp"]["master"]["quantitative"]["disk_size_gb"], 120);
    let operators = needs["operators"].as_array().unwrap();
    let mtv = operators.iter().find(|one| one["operator_name"] == "mtv");
    let mtv = mtv.unwrap();
    assert_eq!(mtv["dependencies"], json!(["cnv"]));
    let worker = &mtv["requirements"]["worker"]["quantitative"];
    assert_eq!(*worker, json!({ "cpu_cores": 1, "ram_mib": 1024 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn images_that_administrators_added_earlier_are_not_on_offer() {
    use sqlx::Connection as _;
    let server = Server::start().await;
    let mut connection = sqlx::PgConnection::connect_with(&server.database.options())
        .await
        .unwrap();
    let fill = r#"insert into release_images (version, cpu_architecture, record, added_by, added_at)
        values ('4.18.9', 'x86_64', '{"version":"4.18.9","openshift_version":"4.18","cpu_architecture":"x86_64","url":"a.example/b:1"}', 'x', now());
        insert into os_images (openshift_version, cpu_architecture, record, added_by, added_at)
        values ('4.20', 'arm64', '{"version":"420","openshift_version":"4.20","cpu_architecture":"arm64","url":"http://a.example/b.iso"}', 'x', now())"#;
    sqlx::raw_sql(fill).execute(&mut connection).await.unwrap();
    let server = server.restart().await;
    for (path, member, expected) in [
        ("/v2/release-images", "version", ["4.18.7", "4.19.0-ec.2"]),
        ("/v2/os-images", "openshift_version", ["4.18", "4.19"]),
    ] {
        let listed = server.get(path).await.expect(200);
        let listed = listed.as_array().unwrap().iter();
        let versions: Vec<_> = listed.map(|one| one[member].as_str().unwrap()).collect();
        assert_eq!(versions, expected);
    }
    let versions = server.get("/v2/openshift-versions").await.expect(200);
    assert_eq!(versions["4.18.9"], Value::Null, "{versions}");
    // An earlier server finds them after a roll-back.
    let kept = "select (select count(*) from release_images) + (select count(*) from os_images)";
    let kept = sqlx::query_scalar::<_, i64>(kept).fetch_one(&mut connection);
    assert_eq!(kept.await.unwrap(), 2);
}
