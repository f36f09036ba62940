//! Declarations: the agent-based installer's files are applied, again, in parts, as dry runs, and exported.

use api_server::operations::access::Scheme;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, PULL_SECRET, Server, inventory};
use crate::secured::{SecuredServer, pull_secret, with};

const INSTALL: &str = "
apiVersion: v1
metadata:
  name: demo
baseDomain: example.com
controlPlane:
  name: master
  replicas: 3
networking:
  machineNetwork:
  - cidr: 192.0.2.0/24
platform:
  baremetal:
    apiVIPs: [192.0.2.5]
    ingressVIPs: [192.0.2.6]
fips: true
";
const AGENT: &str = "
apiVersion: v1beta1
kind: AgentConfig
metadata:
  name: rack-1
additionalNTPSources: [192.0.2.1]
hosts:
- hostname: alpha
  role: master
  rootDeviceHints:
    deviceName: /dev/sda
  interfaces:
  - name: eth0
    macAddress: 52:54:00:aa:00:01
  networkConfig:
    interfaces:
    - name: eth0
      type: ethernet
      state: up
";

fn files() -> String {
    format!("{INSTALL}pullSecret: '{PULL_SECRET}'\n---{AGENT}")
}

async fn send(server: &Server, path: &str, text: &str) -> Answer {
    let request = server.request(Method::POST, path);
    let request = request.header("content-type", "application/yaml");
    Server::send(request.body(text.to_owned())).await
}

/// Sends the parts of a form.
async fn send_form(server: &Server, path: &str, parts: &[(&str, &str)]) -> Answer {
    let part = |(name, text): &(&str, &str)| {
        format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n")
    };
    let body: String = parts.iter().map(part).collect();
    let request = server.request(Method::POST, path);
    let request = request.header("content-type", "multipart/form-data; boundary=b");
    Server::send(request.body(body + "--b--\r\n")).await
}

fn fields(applied: &Value) -> Vec<&str> {
    let changes = applied["changes"].as_array().unwrap();
    changes
        .iter()
        .map(|one| one["field"].as_str().unwrap())
        .collect()
}

async fn count(server: &Server, path: &str) -> usize {
    server.get(path).await.expect(200).as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn files_create_a_cluster_and_change_nothing_the_second_time() {
    let server = Server::start().await;
    let path = "/v2/infra-envs/apply";
    let dry = send(&server, &format!("{path}?dry_run=true"), &files())
        .await
        .expect(201);
    assert_eq!(fields(&dry), ["cluster", "infra-env", "expected host"]);
    assert!(dry.get("cluster_id").is_none(), "{dry}");
    assert_eq!(count(&server, "/v2/clusters").await, 0);
    assert_eq!(count(&server, "/v2/infra-envs").await, 0);

    let created = send(&server, path, &files()).await.expect(201);
    let cluster = created["cluster_id"].as_str().unwrap();
    let infra_env = created["infra_env_id"].as_str().unwrap();
    let record = server
        .get(&format!("/v2/clusters/{cluster}"))
        .await
        .expect(200);
    assert_eq!(record["openshift_version"], "4.18.7", "the default release");
    assert_eq!(record["api_vips"][0]["ip"], "192.0.2.5");
    assert_eq!(record["additional_ntp_source"], "192.0.2.1");
    assert_eq!(record["install_config_overrides"], r#"{"fips":true}"#);
    let record = server
        .get(&format!("/v2/infra-envs/{infra_env}"))
        .await
        .expect(200);
    assert_eq!(
        (&record["name"], &record["cluster_id"]),
        (&json!("rack-1"), &json!(cluster))
    );
    assert!(
        record["static_network_config"]
            .as_str()
            .unwrap()
            .contains("ethernet")
    );
    assert!(
        !created.to_string().contains("dXNlcjpwYXNzd29yZA"),
        "{created}"
    );

    let again = send(&server, path, &files()).await.expect(200);
    assert_eq!(fields(&again), [] as [&str; 0], "{again}");
    let of_infra_env = format!("/v2/infra-envs/{infra_env}/apply");
    let again = send(&server, &of_infra_env, &files()).await.expect(200);
    assert_eq!(fields(&again), [] as [&str; 0], "{again}");

    // The expected host takes its settings over.
    let host = server.host(infra_env, 1).await;
    server
        .reply(&host, "inventory", &inventory(1))
        .await
        .expect(204);
    let record = server.get(&host).await.expect(200);
    assert_eq!(
        (&record["requested_hostname"], &record["role"]),
        (&json!("alpha"), &json!("master"))
    );

    // Exported files of this state change nothing either.
    let export = server
        .get(&format!("/v2/infra-envs/{infra_env}/export"))
        .await;
    assert_eq!(export.status, 200);
    assert!(!export.text.contains("pullSecret:"), "{}", export.text);
    let again = send(&server, &of_infra_env, &export.text).await.expect(200);
    assert_eq!(fields(&again), [] as [&str; 0], "{again}\n{}", export.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_members_are_listed_and_applied() {
    let server = Server::start().await;
    let created = send(&server, "/v2/infra-envs/apply", &files())
        .await
        .expect(201);
    let cluster = format!("/v2/clusters/{}", created["cluster_id"].as_str().unwrap());
    let infra_env = created["infra_env_id"].as_str().unwrap();
    let path = format!("/v2/infra-envs/{infra_env}/apply");
    let changed = files()
        .replace("[192.0.2.1]", "[192.0.2.2]")
        .replace("fips: true", "fips: false")
        .replace("hostname: alpha", "hostname: omega");
    let expected = [
        "install-config.yaml: fips",
        "agent-config.yaml: additionalNTPSources",
        "agent-config.yaml: hosts",
    ];
    let dry = send(&server, &format!("{path}?dry_run=true"), &changed)
        .await
        .expect(200);
    assert_eq!(fields(&dry), expected);
    let record = server.get(&cluster).await.expect(200);
    assert_eq!(record["additional_ntp_source"], "192.0.2.1");
    let real = send(&server, &path, &changed).await.expect(200);
    assert_eq!(real, dry);
    let record = server.get(&cluster).await.expect(200);
    assert_eq!(record["additional_ntp_source"], "192.0.2.2");
    assert_eq!(record["install_config_overrides"], r#"{"fips":false}"#);
    let list = server
        .get(&format!("/v2/infra-envs/{infra_env}/expected-hosts"))
        .await
        .expect(200);
    assert_eq!(list["hosts"][0]["expected"]["name"], "omega");
    // A part that is refused keeps the others from being written.
    let broken = changed
        .replace("[192.0.2.2]", "[192.0.2.3]")
        .replace("role: master", "role: bootstrap");
    send(&server, &path, &broken).await.expect(400);
    let record = server.get(&cluster).await.expect(200);
    assert_eq!(record["additional_ntp_source"], "192.0.2.2");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agent_is_embedded_as_the_files_say() {
    let server = Server::start().await;
    let with = |is_embedded: bool| {
        let member = format!("kind: AgentConfig\nembeddedAgent: {is_embedded}");
        files().replace("kind: AgentConfig", &member)
    };
    let path = "/v2/infra-envs/apply";
    let created = send(&server, path, &with(true)).await.expect(201);
    let infra_env = format!(
        "/v2/infra-envs/{}",
        created["infra_env_id"].as_str().unwrap()
    );
    let is_embedded = async || {
        let record = server.get(&infra_env).await.expect(200);
        record["embedded_agent"] == true
    };
    assert!(is_embedded().await);
    let export = server.get(&format!("{infra_env}/export")).await.text;
    assert!(export.contains("embeddedAgent: true\n"), "{export}");
    // Left out, it stays.
    for text in [&with(true), &files(), &export] {
        let again = send(&server, path, text).await.expect(200);
        assert_eq!(fields(&again), [] as [&str; 0], "{again}");
        assert!(is_embedded().await);
    }
    for wanted in [false, true] {
        let applied = send(&server, path, &with(wanted)).await.expect(200);
        assert_eq!(fields(&applied), ["agent-config.yaml: embeddedAgent"]);
        assert_eq!(is_embedded().await, wanted);
        let again = send(&server, path, &with(wanted)).await.expect(200);
        assert_eq!(fields(&again), [] as [&str; 0], "{again}");
    }
    let malformed = with(true).replace("embeddedAgent: true", "embeddedAgent: always");
    let refused = send(&server, path, &malformed).await.expect(400);
    let reason = refused["reason"].as_str().unwrap();
    assert!(reason.contains("agent-config.yaml"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_parts_of_a_form_and_refused_with_their_member() {
    let server = Server::start().await;
    let path = "/v2/infra-envs/apply?dry_run=true";
    let install = format!("{INSTALL}pullSecret: '{PULL_SECRET}'\n");
    let parts = [
        ("agent-config", AGENT),
        ("install-config.yaml", install.as_str()),
    ];
    let applied = send_form(&server, path, &parts).await.expect(201);
    assert_eq!(applied["created"], true);
    send_form(&server, path, &[("other", "x")])
        .await
        .expect(400);
    let rendezvous = files().replace(
        "kind: AgentConfig",
        "kind: AgentConfig\nrendezvousIP: 192.0.2.9",
    );
    let noted = send(&server, path, &rendezvous).await.expect(201);
    assert!(
        noted["notes"].to_string().contains("rendezvousIP"),
        "{noted}"
    );
    // Each part has lines of its own.
    let broken = [
        ("install-config", &*install.replace("fips", "fibs")),
        (
            "agent-config",
            &*AGENT.replace("role: master", "role: main"),
        ),
    ];
    let refused = send_form(&server, path, &broken).await.expect(400);
    let reason = refused["reason"].as_str().unwrap();
    for part in [
        "agent-config.yaml:9:9: hosts[0].role: \"main\" is unknown",
        "install-config.yaml:16:1: fibs: is unknown",
    ] {
        assert!(reason.contains(part), "{reason}");
    }
    let unclosed = [("agent-config", AGENT), ("install-config", "a: [")];
    let refused = send_form(&server, path, &unclosed).await.expect(400);
    let reason = refused["reason"].as_str().unwrap();
    assert!(reason.contains("install-config.yaml:1:"), "{reason}");
    let refused = send(&server, path, &INSTALL.replace("fips", "fibs"))
        .await
        .expect(400);
    assert!(
        refused["reason"].as_str().unwrap().contains("fibs"),
        "{refused}"
    );
    let refused = send(&server, path, INSTALL).await.expect(400);
    assert!(
        refused["reason"].as_str().unwrap().contains("pullSecret"),
        "{refused}"
    );

    let pool = server.infra_env(None).await;
    send(&server, &format!("/v2/infra-envs/{pool}/apply"), &files())
        .await
        .expect(400);
    server
        .get(&format!("/v2/infra-envs/{pool}/export"))
        .await
        .expect(400);
}

// limit: declared files
#[tokio::test(flavor = "multi_thread")]
async fn declared_files_are_limited() {
    let server = Server::start().await;
    let status = async |length: usize| {
        let text = format!("#{}", " ".repeat(length - 1));
        send(&server, "/v2/infra-envs/apply", &text)
            .await
            .status
            .as_u16()
    };
    assert_eq!(status(2 << 20).await, 400, "read, and has no document");
    assert_eq!(status((2 << 20) + 1).await, 413);
}

/// A declaration names its cluster: of the same name, each user has one.
#[tokio::test(flavor = "multi_thread")]
async fn declarations_reach_no_clusters_of_others() {
    let site = SecuredServer::oidc(|settings| settings.enable_org_tenancy = true).await;
    let send = async |user: &str, org: &str, method: Method, path: &str, replicas: u32| {
        let text = files().replace(PULL_SECRET, &pull_secret(user));
        let text = text.replace("replicas: 3", &format!("replicas: {replicas}"));
        let request = site.server.request(method.clone(), path);
        let request = match method {
            Method::GET => request,
            _ => request
                .header("content-type", "application/yaml")
                .body(text),
        };
        let token = site.user_with(user, json!({ "org_id": org }));
        Server::send(with(request, Scheme::User, &token)).await
    };
    let apply = "/v2/infra-envs/apply";
    let own = send("alice", "research", Method::POST, apply, 3)
        .await
        .expect(201);
    let id = |applied: &Value, name: &str| applied[name].as_str().unwrap().to_owned();
    let (cluster, infra_env) = (id(&own, "cluster_id"), id(&own, "infra_env_id"));
    let path = format!("/v2/clusters/{cluster}");
    let state = async || site.get("root", &path).await.expect(200)["updated_at"].clone();
    let before = state().await;

    // A stranger gets a cluster of the same name.
    let other = send("bob", "sales", Method::POST, apply, 5)
        .await
        .expect(201);
    assert_ne!(id(&other, "cluster_id"), cluster);
    let again = send("bob", "sales", Method::POST, apply, 5)
        .await
        .expect(200);
    assert_eq!(id(&again, "cluster_id"), id(&other, "cluster_id"));
    // Nor do paths lead to it.
    let of_alice = format!("/v2/infra-envs/{infra_env}");
    for (user, org, status) in [("bob", "sales", 404), ("dora", "research", 403)] {
        let applied = format!("{of_alice}/apply");
        for path in [applied.clone(), format!("{applied}?dry_run=true")] {
            send(user, org, Method::POST, &path, 5).await.expect(status);
        }
    }
    let export = format!("{of_alice}/export");
    send("bob", "sales", Method::GET, &export, 3)
        .await
        .expect(404);
    // A colleague reads it, and changes nothing by its name.
    let read = send("dora", "research", Method::GET, &export, 3).await;
    assert_eq!(read.status, 200, "{}", read.text);
    assert!(!read.text.contains("auths"), "{}", read.text);
    send("dora", "research", Method::POST, apply, 5)
        .await
        .expect(403);
    send("auditor", "", Method::POST, apply, 5)
        .await
        .expect(403);
    assert_eq!(state().await, before);

    // An infra-env of one's own does not reach the cluster of another that it is moved to.
    let moved = json!({ "cluster_id": cluster });
    let infra_env = id(&other, "infra_env_id");
    let path = format!("/v2/infra-envs/{infra_env}");
    let answer = site.send("bob", Method::PATCH, &path, Some(&moved)).await;
    let status = answer.status.as_u16();
    assert!(matches!(status, 201 | 400 | 403 | 404), "{answer:?}");
    let found = send("bob", "sales", Method::GET, &format!("{path}/export"), 3).await;
    assert!(!found.text.contains(&cluster), "{}", found.text);
    assert_eq!(state().await, before);
}
