//! Releases on offer because the registry of the site holds them.

use std::io::Write as _;

use api_server::settings::{OsImages, PublicationRegistry, ReleaseImages};
use serde_json::{Value, json};
use service::settings::Setting as _;

use crate::harness::{Server, cluster_params, merged};
use crate::site_registry::{SiteRegistry, all};

/// Settings of a server without lists, that reads `registry`.
fn reading(registry: &SiteRegistry) -> impl FnOnce(&mut api_server::Settings) + use<> {
    let address = registry.address.clone();
    let change = registry.settings(&["4.18.7"]);
    move |settings| {
        change(settings);
        settings.release_images = ReleaseImages::parse("[]").unwrap();
        settings.os_images = OsImages::parse("[]").unwrap();
        settings.content_registry = Some(PublicationRegistry(address.parse().unwrap()));
    }
}

async fn versions(server: &Server) -> Vec<String> {
    let versions = server.get("/v2/openshift-versions").await.expect(200);
    versions.as_object().unwrap().keys().cloned().collect()
}

async fn until_versions(server: &Server, expected: &[&str]) {
    server
        .until("the versions of the registry", async || {
            let found = versions(server).await;
            if found == expected {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        })
        .await;
}

/// The event of a push, as the registry sends it.
async fn notify(server: &Server, repository: &str) {
    let event = json!({ "action": "push", "target": { "repository": repository } });
    let request = server
        .client
        .post(format!("{}/registry-events", server.url));
    let request = request.header(
        "content-type",
        "application/vnd.docker.distribution.events.v1+json",
    );
    let body = json!({ "events": [event] }).to_string();
    Server::send(request.body(body)).await.expect(200);
}

fn finding<'a>(report: &'a Value, id: &str) -> &'a Value {
    let mut checks = report["checks"].as_array().unwrap().iter();
    checks
        .find(|one| one["id"] == id)
        .unwrap_or_else(|| panic!("{id}: {report}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn complete_releases_of_the_registry_are_on_offer() {
    let registry = SiteRegistry::start().await;
    registry.publish("4.18.7", &all()).await;
    registry.publish_components("4.18.7", &all()).await;
    let release: oci::Reference = registry.release("4.18.7").parse().unwrap();
    let digest = SiteRegistry::client().manifest_digest(&release).await;
    let digest = digest.unwrap().unwrap();
    let signature = format!("{}:sha256-{}.sig", release.repository, digest.hex());
    registry.publish_image(&signature).await;
    // Incomplete, and none.
    registry.publish("4.18.9", &all()).await;
    let other = format!("{}/apps/tool:1.2.3-x86_64", registry.address);
    testkit::release::publish_payload(&SiteRegistry::client(), &other, "9.9.9", &[("a", &other)])
        .await
        .unwrap();
    let server = Server::with(reading(&registry)).await;
    until_versions(&server, &["4.18.7"]).await;
    let listed = server.get("/v2/release-images").await.expect(200);
    assert_eq!(listed[0]["default"], true, "{listed}");
    assert_eq!(
        (&listed[0]["is_found"], &listed[1]["is_found"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(
        (&listed[0]["is_signed"], &listed[1]["is_signed"]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(listed[1]["version"], "4.18.9");
    let missing = listed[1]["missing"].as_array().unwrap();
    assert_eq!(missing.len(), 7, "{listed}");
    // Live images are those of the newest complete release of each minor version.
    let images = Server::send(server.client.get(format!("{}/os-images", server.url))).await;
    let images = images.expect(200);
    let live = format!(
        "oci://{}",
        registry.component("4.18.7", "machine-os-images")
    );
    assert_eq!(images[0]["url"], live, "{images}");
    assert_eq!(images[0]["openshift_version"], "4.18");
    assert_eq!(images[0]["version"], "418.94.4.18.7");
    let listed = server.get("/v2/os-images").await.expect(200);
    assert_eq!(
        (&listed[0]["url"], &listed[0]["is_found"]),
        (&json!(live), &json!(true))
    );
    let params = merged(cluster_params(), json!({ "openshift_version": "4.18.9" }));
    let refused = server.post("/v2/clusters", &params).await;
    refused.expect(400);
    let cluster = server.cluster(json!({ "openshift_version": "4.18" })).await;
    let cluster = server
        .get(&format!("/v2/clusters/{cluster}"))
        .await
        .expect(200);
    assert_eq!(cluster["ocp_release_image"], registry.release("4.18.7"));

    let report = server.get("/v2/doctor").await.expect(200);
    let incomplete = finding(&report, "registry-content:4.18.9");
    assert_eq!(incomplete["status"], "failed", "{incomplete}");
    let left_out = finding(&report, &format!("registry-content:{other}"));
    assert!(
        left_out["finding"].as_str().unwrap().contains("9.9.9"),
        "{left_out}"
    );

    // Rehearsals have the same releases, and need no login for them.
    let rehearsal = json!({ "kind": "rehearsal", "rehearsal": { "profile": "sno" } });
    let job = server.post("/v2/jobs", &rehearsal).await.expect(202);
    let path = format!("/v2/jobs/{}", job["id"].as_str().unwrap());
    server
        .until("the rehearsal's end", async || {
            let job = server.get(&path).await.expect(200);
            match &job["rehearsal"]["verdict"] {
                Value::String(verdict) if verdict == "installed, no mistakes" => Ok(()),
                _ => Err(job),
            }
        })
        .await;

    // Completed by a push, of which the registry reports the repository.
    registry.publish_components("4.18.9", &all()).await;
    notify(&server, "openshift/release").await;
    until_versions(&server, &["4.18.7", "4.18.9"]).await;

    // With the registry away, the last reading stays, also over a restart.
    let change = reading(&registry);
    registry.stop().await;
    let server = server.restart_with(change).await;
    until_versions(&server, &["4.18.7", "4.18.9"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_of_several_streams_boots_and_installs_each() {
    let registry = SiteRegistry::start().await;
    let [nine, ten] = ["9.6.1-0", "10.0.1-0"].map(testkit::release::stream);
    let streams = json!({ "rhel-9": nine, "rhel-10": ten }).to_string();
    let both = json!({ "stream": nine.to_string(), "streams": streams });
    registry.publish_streams("4.22.1", &both).await;
    let okd = json!({ "streams": json!({ "": ten }).to_string() });
    registry.publish_streams("5.0.1", &okd).await;
    let truncated = json!({ "stream": nine.to_string(), "streams": &streams[..streams.len() / 2] });
    registry.publish_streams("4.22.2", &truncated).await;
    let server = Server::with(reading(&registry)).await;
    until_versions(&server, &["4.22.1", "5.0.1"]).await;
    let report = server.get("/v2/doctor").await.expect(200);
    let broken = registry.release("4.22.2");
    let broken = finding(&report, &format!("registry-content:{broken}"));
    assert!(
        broken["finding"].as_str().unwrap().contains("streams: EOF"),
        "{broken}"
    );

    let versions = server.get("/v2/openshift-versions").await.expect(200);
    let expected = json!([{ "name": "rhel-9", "default": true }, { "name": "rhel-10" }]);
    assert_eq!(versions["4.22.1"]["os_streams"], expected);
    assert_eq!(versions["5.0.1"].get("os_streams"), None);
    let images = Server::send(server.client.get(format!("{}/os-images", server.url))).await;
    let images = images.expect(200);
    let shown = images.as_array().unwrap().iter();
    let shown: Vec<_> = shown.map(|it| [&it["version"], &it["os_stream"]]).collect();
    let named = |version: &str, stream: &str| [json!(version), json!(stream)];
    let expected = [
        named("9.6.1-0", "rhel-9"),
        named("10.0.1-0", "rhel-10"),
        [json!("10.0.1-0"), Value::Null],
    ];
    assert_eq!(json!(shown), json!(expected));

    let refused = merged(
        cluster_params(),
        json!({ "openshift_version": "4.22", "os_stream": "rhel-11" }),
    );
    let refused = server.post("/v2/clusters", &refused).await.expect(400);
    let reason = refused["reason"].as_str().unwrap();
    assert!(reason.contains("[rhel-9, rhel-10]"), "{reason}");
    let cluster = server
        .cluster(json!({ "openshift_version": "4.22", "os_stream": "rhel-10" }))
        .await;
    let config = server
        .get(&format!("/v2/clusters/{cluster}/install-config"))
        .await
        .expect(200);
    let config: Value = serde_json::from_str(config.as_str().unwrap()).unwrap();
    assert_eq!(config["osImageStream"], "rhel-10");

    let params = json!({ "name": "env", "cluster_id": cluster, "pull_secret": cluster_params()["pull_secret"] });
    let made = server.post("/v2/infra-envs", &params).await.expect(201);
    let path = format!("/v2/infra-envs/{}", made["id"].as_str().unwrap());
    let record = server.get(&path).await.expect(200);
    let url = |record: &Value| record["download_url"].as_str().unwrap().to_owned();
    assert_eq!(record["os_stream"], "rhel-10");
    assert!(url(&record).contains("/10.0.1-0/x86_64/"), "{record}");
    let script = format!("{path}/downloads/files?file_name=ipxe-script");
    let script = server
        .request(reqwest::Method::GET, &script)
        .send()
        .await
        .unwrap();
    let script = script.text().await.unwrap();
    assert!(script.contains("version=10.0.1-0&arch=x86_64"), "{script}");
    let record = server
        .patch(&path, &json!({ "os_stream": "rhel-9" }))
        .await
        .expect(201);
    assert_eq!(record.get("os_stream"), None);
    assert!(url(&record).contains("/4.22/x86_64/"), "{record}");
}

/// After an empty list, image services would remove their files.
#[tokio::test(flavor = "multi_thread")]
async fn image_services_wait_for_the_first_reading() {
    let registry = SiteRegistry::start().await;
    let (change, again) = (reading(&registry), reading(&registry));
    registry.stop().await;
    let until_failed = async |server: &Server| {
        server
            .until("the failed reading", async || {
                let report = server.get("/v2/doctor").await.expect(200);
                if finding(&report, "registry-content")["status"] == "failed" {
                    Ok(())
                } else {
                    Err(report)
                }
            })
            .await;
    };
    let server = Server::with(change).await;
    until_failed(&server).await;
    assert_eq!(server.plain("/os-images").await, 503);
    // The failure is stored, which is no reading.
    let server = server.restart_with(again).await;
    until_failed(&server).await;
    assert_eq!(server.plain("/os-images").await, 503);
    assert_eq!(server.get("/v2/os-images").await.expect(200), json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_nobody_are_harmless() {
    let registry = SiteRegistry::start().await;
    let server = Server::with(reading(&registry)).await;
    let post = async |kind: &str, body: String| {
        let request = server
            .client
            .post(format!("{}/registry-events", server.url));
        let request = request.header("content-type", kind);
        Server::send(request.body(body)).await.status.as_u16()
    };
    let json_type = "application/json";
    assert_eq!(post("text/plain", "{}".to_owned()).await, 400);
    assert_eq!(post(json_type, "[1]".to_owned()).await, 400);
    assert_eq!(post(json_type, "{}".to_owned()).await, 200);
    let names = (0..3_000).map(|number| format!("../{number}"));
    let names = names.chain((0..3_000).map(|number| format!("apps/{number}")));
    let events = names.map(|name| json!({ "action": "push", "target": { "repository": name } }));
    let events: Vec<Value> = events.collect();
    assert_eq!(
        post(json_type, json!({ "events": events }).to_string()).await,
        200
    );
    registry.publish("4.18.7", &all()).await;
    registry.publish_components("4.18.7", &all()).await;
    notify(&server, "openshift/release-images").await;
    until_versions(&server, &["4.18.7"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_and_clusters_pull_a_mirrored_release_from_the_registry() {
    let source = "quay.example/okd/content";
    let registry = SiteRegistry::start().await;
    registry.publish_mirrored("4.18.7", &all(), source).await;
    registry.publish_components("4.18.7", &all()).await;
    let server = Server::with(reading(&registry)).await;
    until_versions(&server, &["4.18.7"]).await;
    // Its pull secret knows neither registry.
    let cluster = server.cluster(json!({ "openshift_version": "4.18" })).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    let mirror = format!("{}/openshift/release", registry.address);

    let path = format!("/v2/clusters/{cluster}/install-config");
    let config = server.get(&path).await.expect(200);
    let config = config.as_str().unwrap();
    let config: Value = serde_json::from_str(config).unwrap();
    assert_eq!(
        config["imageDigestSources"],
        json!([{ "source": source, "mirrors": [mirror] }])
    );

    let path = format!("/v2/infra-envs/{infra_env}/downloads/files?file_name=discovery.ign");
    let ignition = server.get(&path).await.expect(200);
    let files = ignition["storage"]["files"].as_array().unwrap();
    let conf = files
        .iter()
        .find(|file| file["path"] == "/etc/containers/registries.conf")
        .unwrap();
    let conf = conf["contents"]["source"].as_str().unwrap();
    let conf = conf.replace("%3A", ":");
    assert!(conf.contains(source) && conf.contains(&mirror), "{conf}");

    // The same after a restart, without the registry.
    let change = reading(&registry);
    registry.stop().await;
    let server = server.restart_with(change).await;
    until_versions(&server, &["4.18.7"]).await;
    assert_eq!(
        server.get(&path).await.expect(200)["storage"],
        ignition["storage"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_payloads_are_named_and_harm_no_others() {
    let registry = SiteRegistry::start().await;
    registry.publish("4.18.7", &all()).await;
    registry.publish_components("4.18.7", &all()).await;
    // The same release once more, and another one under its version.
    let client = SiteRegistry::client();
    let tag = "release-images:4.18.7-x86_64";
    let elsewhere = format!("{}/copy/{tag}", registry.address);
    let original: oci::Reference = registry.release("4.18.7").parse().unwrap();
    let manifest = client.pull_manifest(&original).await.unwrap();
    let copy: oci::Reference = elsewhere.parse().unwrap();
    for blob in manifest.blobs() {
        let mounted = client.mount_blob(&copy, &original.repository, &blob.digest);
        assert!(mounted.await.unwrap());
    }
    client.push_manifest(&copy, &manifest).await.unwrap();
    let payload = async |image: &str, version: &str| {
        let image = format!("{}/{image}", registry.address);
        let own = [("a", image.as_str())];
        testkit::release::publish_payload(&client, &image, version, &own)
            .await
            .unwrap();
    };
    payload(&format!("other/{tag}"), "4.18.7").await;
    // Another label, another architecture, and layers that are none.
    payload("openshift/release-images:4.18.8-x86_64", "4.18.9").await;
    payload("openshift/release-images:4.18.9-s390x", "4.18.9").await;
    let whole = gzip(b"no archive");
    registry
        .publish_layer("4.18.10", &whole[..whole.len() / 2])
        .await;
    registry.publish_layer("4.18.11", &whole).await;
    registry.publish_layer("4.18.12", b"").await;

    let server = Server::with(reading(&registry)).await;
    until_versions(&server, &["4.18.7"]).await;
    let listed = server.get("/v2/release-images").await.expect(200);
    let images: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["url"])
        .collect();
    assert_eq!(images.len(), 1, "{listed}");
    let report = server.get("/v2/doctor").await.expect(200);
    for (tag, reason) in [
        (
            "4.18.8-x86_64",
            "its label io.openshift.release is \"4.18.9\", not \"4.18.8\"",
        ),
        ("4.18.9-s390x", "it is built for amd64, not for s390x"),
        ("4.18.10-x86_64", "incomplete deflate stream"),
        ("4.18.11-x86_64", "cannot be read as tar"),
        (
            "4.18.12-x86_64",
            "it has no file release-manifests/image-references",
        ),
    ] {
        let image = format!("{}/openshift/release-images:{tag}", registry.address);
        let finding = finding(&report, &format!("registry-content:{image}"));
        let text = finding["finding"].as_str().unwrap();
        let is_named = text.starts_with(&format!("{image} is left out: "));
        assert!(is_named && text.contains(reason), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_get_the_operator_catalogs_of_the_registry() {
    let registry = SiteRegistry::start().await;
    registry.publish("4.18.7", &all()).await;
    registry.publish_components("4.18.7", &all()).await;
    let digest = registry.publish_image("ocp/acme/tool:v1").await;
    let index = |version: &str| {
        format!(
            "{}/ocp/redhat/redhat-operator-index:v{version}",
            registry.address
        )
    };
    let catalog = format!(
        "{{schema: olm.package, name: tool, defaultChannel: stable}}\n---\n\
         {{schema: olm.bundle, name: tool.v1, package: tool, image: 'source.example/acme/tool@{digest}',\n\
         relatedImages: [{{name: other, image: 'source.example/acme/absent@{digest}'}}, \
         {{name: tagged, image: 'source.example/acme/tool:v1'}}]}}\n"
    );
    let client = SiteRegistry::client();
    for version in ["4.17", "4.18"] {
        let image = index(version);
        testkit::release::publish_catalog(&client, &image, &catalog)
            .await
            .unwrap();
    }
    registry.publish_image("apps/tool:v4.18").await;
    registry.publish("4.18.9", &all()).await;
    registry.publish_components("4.18.9", &all()).await;
    // Lists of releases and live images do not hide the catalogs.
    let lists = registry.settings(&["4.18.7"]);
    let place = registry.address.clone();
    let server = Server::with(|settings| {
        lists(settings);
        settings.content_registry = Some(PublicationRegistry(place.parse().unwrap()));
        settings.dummy_ignition = true;
    })
    .await;
    let report = server
        .until("the reading of the registry", async || {
            let report = server.get("/v2/doctor").await.expect(200);
            let status = finding(&report, "registry-content")["status"].clone();
            if status == "passed" {
                Ok(report)
            } else {
                Err(format!("{status}"))
            }
        })
        .await;
    let unlisted = finding(&report, "registry-content:RELEASE_IMAGES");
    let text = unlisted["finding"].as_str().unwrap();
    assert!(text.ends_with("as 4.18.9"), "{text}");
    let cluster = server.cluster(json!({ "openshift_version": "4.18" })).await;
    let path = format!("/v2/clusters/{cluster}/install-config");
    let config = server.get(&path).await.expect(200);
    let config: Value = serde_json::from_str(config.as_str().unwrap()).unwrap();
    let mirror = format!("{}/ocp/acme/tool", registry.address);
    assert_eq!(
        config["imageDigestSources"],
        json!([{ "source": "source.example/acme/tool", "mirrors": [mirror] }])
    );
    let lacking = finding(&report, &format!("registry-content:{}", index("4.18")));
    let text = lacking["finding"].as_str().unwrap();
    assert!(text.contains("name 1 repositories"), "{text}");
    assert!(text.contains("source.example/acme/absent@"), "{text}");
    let listed = server.get("/v2/operator-catalogs").await.expect(200);
    let expected = ["4.17", "4.18"].map(|version| {
        json!({
            "openshift_version": version, "image": index(version), "missing_repositories": 1,
            "missing": [format!("source.example/acme/absent@{digest}")],
        })
    });
    assert_eq!(listed, json!(expected));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
