//! Installation of a single-node cluster, with cancellation, reset, restarts and logs.

use serde_json::{Value, json};
use testkit::certificates;

use crate::harness::{Answer, Server, host_id, inventory, merged};

const CERTIFICATE_KIND: &str = "-----BEGIN CERTIFICATE-----";

/// A ready single-node cluster: its id, and its host's path.
pub(crate) async fn ready(server: &Server) -> (String, String) {
    ready_with(server, 1).await
}

/// The same, with that host number.
async fn ready_with(server: &Server, number: u32) -> (String, String) {
    ready_as(server, number, json!({})).await
}

/// The same, with additional parameters.
pub(crate) async fn ready_as(server: &Server, number: u32, more: Value) -> (String, String) {
    let params = json!({ "control_plane_count": 1, "high_availability_mode": "None" });
    let cluster = server.cluster(merged(params, more)).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    let host = server.host(&infra_env, number).await;
    server
        .reply(&host, "inventory", &inventory(1))
        .await
        .expect(204);
    reply_until(server, &host, "known").await;
    let path = format!("/v2/clusters/{cluster}");
    wait_status(server, &path, "ready").await;
    (cluster, host)
}

/// Replies to the host's steps until it has that status.
pub(crate) async fn reply_until(server: &Server, host: &str, status: &str) {
    server
        .until(&format!("the host is {status}"), async || {
            let record = server.get(host).await.expect(200);
            if record["status"] == status {
                return Ok(());
            }
            let now = service::clock::now().timestamp();
            let steps = server
                .get(&format!("{host}/instructions?timestamp={now}"))
                .await
                .expect(200);
            for step in steps["instructions"].as_array().into_iter().flatten() {
                if let Some(output) = output(step) {
                    server
                        .reply(host, step["step_type"].as_str().unwrap(), &output)
                        .await
                        .expect(204);
                }
            }
            Err(format!(
                "{} {} {steps} {}",
                record["status"], record["status_info"], record["validations_info"]
            ))
        })
        .await;
}

/// Output of a step on a healthy machine.
pub(crate) fn output(step: &Value) -> Option<Value> {
    let request =
        || -> Value { serde_json::from_str(step["args"][0].as_str().unwrap()).unwrap_or_default() };
    match step["step_type"].as_str().unwrap() {
        "inventory" => Some(inventory(1)),
        "ntp-synchronizer" => Some(
            json!({ "ntp_sources": [{ "source_name": "192.0.2.1", "source_state": "synced" }] }),
        ),
        "domain-resolution" => {
            let names = request()["domains"].as_array().cloned().unwrap_or_default();
            let resolutions: Vec<Value> = names
                .iter()
                .map(|name| json!({ "domain_name": name["domain_name"], "ipv4_addresses": [], "ipv6_addresses": [] }))
                .collect();
            Some(json!({ "resolutions": resolutions }))
        }
        "connectivity-check" => Some(json!({ "remote_hosts": [] })),
        "installation-disk-speed-check" => {
            Some(json!({ "path": request()["path"], "io_sync_duration": 2 }))
        }
        "container-image-availability" => {
            let names = request()["images"].as_array().cloned().unwrap_or_default();
            let images: Vec<Value> = names
                .iter()
                .map(|name| json!({ "name": name, "result": "success", "size_bytes": 1e8, "time": 1.0, "download_rate": 100.0 }))
                .collect();
            Some(json!({ "images": images }))
        }
        _ => None,
    }
}

pub(crate) async fn wait_status(server: &Server, path: &str, status: &str) -> Value {
    server
        .until(&format!("{path} is {status}"), async || {
            let cluster = server.get(path).await.expect(200);
            if cluster["status"] == status {
                Ok(cluster)
            } else {
                Err(cluster)
            }
        })
        .await
}

pub(crate) async fn progress(server: &Server, host: &str, stages: &[&str]) {
    for stage in stages {
        server
            .put(
                &format!("{host}/progress"),
                &json!({ "current_stage": stage }),
            )
            .await
            .expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn single_nodes_are_installed() {
    install_single_node(&Server::start().await).await;
}

/// Creates and installs a single-node cluster: its id, and its host's path.
pub(crate) async fn install_single_node(server: &Server) -> (String, String) {
    let (id, host) = ready(server).await;
    install(server, &id, &host).await;
    (id, host)
}

/// Installs a ready single-node cluster.
pub(crate) async fn install(server: &Server, cluster: &str, host: &str) {
    finalize(server, cluster, host).await;
    finish(server, &format!("/v2/clusters/{cluster}")).await;
}

/// The same, until the cluster is finalizing.
pub(crate) async fn finalize_single_node(server: &Server) -> (String, String) {
    let (id, host) = ready(server).await;
    finalize(server, &id, &host).await;
    (id, host)
}

async fn finalize(server: &Server, id: &str, host: &str) {
    let path = format!("/v2/clusters/{id}");
    let ordered = server
        .post(&format!("{path}/actions/install"), &json!({}))
        .await
        .expect(202);
    assert_eq!(ordered["status"], "preparing-for-installation");
    assert_eq!(ordered["hosts"][0]["bootstrap"], true);
    server
        .post(&format!("{path}/actions/install"), &json!({}))
        .await
        .expect(409);
    reply_until(server, host, "installing").await;
    let cluster = wait_status(server, &path, "installing").await;
    assert!(cluster["openshift_cluster_id"].is_string(), "{cluster}");

    let steps = server
        .get(&format!("{host}/instructions"))
        .await
        .expect(200);
    let install = steps["instructions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|step| step["step_type"] == "install")
        .unwrap();
    let request: Value = serde_json::from_str(install["args"][0].as_str().unwrap()).unwrap();
    assert_eq!(
        (request["role"].as_str(), request["cluster_id"].as_str()),
        (Some("bootstrap"), Some(id))
    );
    server.delete(host).await.expect(409);
    server.delete(&path).await.expect(409);

    let ignition_path = host.replace("/infra-envs/", "/infra-env/");
    let ignition = server
        .get(&format!("{ignition_path}/downloads/ignition"))
        .await;
    assert_eq!(
        ignition.header("content-disposition"),
        format!("attachment; filename=\"master-{}.ign\"", host_id(1))
    );
    assert!(ignition.expect(200)["ignition"]["version"].is_string());
    server
        .get(&format!("{path}/downloads/files?file_name=bootstrap.ign"))
        .await
        .expect(200);
    check_system_manifests(server, &path).await;
    let early = server
        .get(&format!(
            "{path}/downloads/credentials?file_name=kubeconfig"
        ))
        .await;
    assert_eq!(early.status, 200, "without the ingress: {}", early.text);
    server.get(&format!("{path}/credentials")).await.expect(409);

    let first = [
        "Starting installation",
        "Installing",
        "Waiting for bootkube",
        "Writing image to disk",
    ];
    progress(server, host, &first).await;
    server
        .put(
            &format!("{host}/progress"),
            &json!({ "current_stage": "Installing" }),
        )
        .await
        .expect(409);
    progress(server, host, &["Rebooting", "Joined", "Done"]).await;
    let cluster = wait_status(server, &path, "finalizing").await;
    assert_eq!(
        cluster["progress"]["installing_stage_percentage"], 100,
        "{}",
        cluster["progress"]
    );
}

/// Manifests of the service are listed on request.
async fn check_system_manifests(server: &Server, path: &str) {
    assert_eq!(
        server.get(&format!("{path}/manifests")).await.expect(200),
        json!([])
    );
    let system = server
        .get(&format!("{path}/manifests?include_system_generated=true"))
        .await
        .expect(200);
    assert!(!system.as_array().unwrap().is_empty());
    assert_eq!(system[0]["manifest_source"], "system", "{system}");
    let (folder, name) = (&system[0]["folder"], &system[0]["file_name"]);
    let (folder, name) = (folder.as_str().unwrap(), name.as_str().unwrap());
    let file = format!("{path}/manifests/files?folder={folder}&file_name={name}");
    assert!(server.get(&file).await.text.contains("kind:"));
}

/// Reports of the controller, until the cluster is installed.
pub(crate) async fn finish(server: &Server, path: &str) {
    let stage = json!({ "finalizing_stage": "Waiting for cluster operators" });
    server
        .put(&format!("{path}/progress"), &stage)
        .await
        .expect(200);
    server
        .put(
            &format!("{path}/monitored-operators"),
            &json!({ "name": "nothing", "status": "available" }),
        )
        .await
        .expect(404);
    for operator in server
        .get(&format!("{path}/monitored-operators"))
        .await
        .expect(200)
        .as_array()
        .unwrap()
    {
        let report =
            json!({ "name": operator["name"], "status": "available", "version": "4.18.7" });
        server
            .put(&format!("{path}/monitored-operators"), &report)
            .await
            .expect(200);
    }
    server
        .post(
            &format!("{path}/uploads/ingress-cert"),
            &json!("no certificate"),
        )
        .await
        .expect(400);
    let pem = certificates::self_signed("ingress.example.com")
        .unwrap()
        .cert;
    assert!(pem.starts_with(CERTIFICATE_KIND));
    server
        .post(&format!("{path}/uploads/ingress-cert"), &json!(pem))
        .await
        .expect(201);
    server
        .post(&format!("{path}/uploads/ingress-cert"), &json!(pem))
        .await
        .expect(201);
    let done = json!({ "is_success": true });
    server
        .post(&format!("{path}/actions/complete-installation"), &done)
        .await
        .expect(202);
    let cluster = wait_status(server, path, "installed").await;
    assert_eq!(cluster["progress"]["total_percentage"], 100);
    assert_ne!(cluster["install_completed_at"], "0001-01-01T00:00:00.000Z");

    let kubeconfig = server
        .get(&format!(
            "{path}/downloads/credentials?file_name=kubeconfig"
        ))
        .await;
    assert_eq!(
        kubeconfig.header("content-disposition"),
        "attachment; filename=\"kubeconfig\""
    );
    assert!(kubeconfig.text.contains("certificate-authority-data"));
    let credentials = server.get(&format!("{path}/credentials")).await.expect(200);
    assert_eq!(credentials["username"], "kubeadmin");
    assert!(!credentials["password"].as_str().unwrap().is_empty());
    assert_eq!(
        credentials["console_url"],
        "https://console-openshift-console.apps.demo.example.com"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn installation_without_hosts_is_refused() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let path = format!("/v2/clusters/{id}");
    let refused = server
        .post(&format!("{path}/actions/install"), &json!({}))
        .await
        .expect(409);
    assert!(
        refused["reason"].as_str().unwrap().contains("not ready"),
        "{refused}"
    );
    server
        .post(&format!("{path}/actions/cancel"), &json!({}))
        .await
        .expect(409);
    let events = server
        .get(&format!("/v2/events?cluster_id={id}&severities=error"))
        .await
        .expect(200);
    assert_eq!(events[0]["name"], "cancel_installation_failed");
    server
        .get(&format!("{path}/downloads/files?file_name=bootstrap.ign"))
        .await
        .expect(409);
    server
        .get(&format!("{path}/downloads/files?file_name=passwords"))
        .await
        .expect(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn installations_are_cancelled_and_reset() {
    let server = Server::start().await;
    let (id, host) = ready(&server).await;
    let path = format!("/v2/clusters/{id}");
    server
        .post(&format!("{path}/actions/install"), &json!({}))
        .await
        .expect(202);
    reply_until(&server, &host, "installing").await;
    wait_status(&server, &path, "installing").await;
    let cancelled = server
        .post(&format!("{path}/actions/cancel"), &json!({}))
        .await
        .expect(202);
    assert_eq!(
        (&cancelled["status"], &cancelled["hosts"][0]["status"]),
        (&json!("cancelled"), &json!("cancelled"))
    );
    let reset = server
        .post(&format!("{path}/actions/reset"), &json!({}))
        .await
        .expect(202);
    assert_eq!(reset["status"], "insufficient");
    assert_eq!(reset["hosts"][0]["status"], "resetting-pending-user-action");
    assert!(reset.get("openshift_cluster_id").is_none());
    server
        .get(&format!("{path}/downloads/files?file_name=bootstrap.ign"))
        .await
        .expect(409);
}

#[tokio::test(flavor = "multi_thread")]
async fn preparation_resumes_after_a_restart() {
    let server = Server::start().await;
    let (id, host) = ready(&server).await;
    let path = format!("/v2/clusters/{id}");
    server
        .post(&format!("{path}/actions/install"), &json!({}))
        .await
        .expect(202);
    let server = server.restart().await;
    reply_until(&server, &host, "installing").await;
    wait_status(&server, &path, "installing").await;
}

/// Uploads logs under that multipart name.
pub(crate) async fn upload(server: &Server, path: &str, part: &str, content: &str) -> Answer {
    let body = format!(
        "--b\r\nContent-Disposition: form-data; name=\"{part}\"; filename=\"l.tgz\"\r\n\r\n{content}\r\n--b--\r\n"
    );
    let request = server
        .request(reqwest::Method::POST, path)
        .header("content-type", "multipart/form-data; boundary=b")
        .body(body);
    Server::send(request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_stored_and_downloaded() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let path = format!("/v2/clusters/{id}/logs");
    let of_controller = format!("{path}?logs_type=controller");
    server.get(&of_controller).await.expect(409);
    upload(&server, &of_controller, "other", "BYTES")
        .await
        .expect(400);
    upload(
        &server,
        &format!("{path}?logs_type=host"),
        "upfile",
        "BYTES",
    )
    .await
    .expect(400);
    upload(&server, &of_controller, "upfile", "BYTES")
        .await
        .expect(204);
    let answer = server.get(&of_controller).await;
    assert_eq!(
        answer.header("content-disposition"),
        format!("attachment; filename=\"demo_{id}_controller.tar.gz\"")
    );
    assert_eq!(answer.text, "BYTES");
    let progress = json!({ "logs_state": "completed" });
    server
        .put(&format!("/v2/clusters/{id}/logs-progress"), &progress)
        .await
        .expect(204);
    assert_eq!(
        server.get(&format!("/v2/clusters/{id}")).await.expect(200)["logs_info"],
        "completed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn all_logs_are_one_archive() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let path = format!("/v2/clusters/{id}/logs");
    let large = "x".repeat(20 << 20);
    let of_controller = format!("{path}?logs_type=controller");
    upload(&server, &of_controller, "upfile", &large)
        .await
        .expect(204);
    // Two machines with the same name, which is not a valid file name.
    let infra_env = server.infra_env(Some(&id)).await;
    for number in [1, 2] {
        let host = server.host(&infra_env, number).await;
        let mut inventory = inventory(number);
        inventory["hostname"] = json!("/../\n");
        server
            .reply(&host, "inventory", &inventory)
            .await
            .expect(204);
        let of_host = format!("{path}?logs_type=host&host_id={}", host_id(number));
        upload(&server, &of_host, "upfile", "BYTES")
            .await
            .expect(204);
    }
    let manifest =
        json!({ "folder": "openshift", "file_name": "mine.yaml", "content": "YTogYgo=" });
    server
        .post(&format!("/v2/clusters/{id}/manifests"), &manifest)
        .await
        .expect(201);
    let all = server.request(reqwest::Method::GET, &path).send().await;
    let all = all.unwrap().error_for_status().unwrap();
    assert_eq!(
        all.headers()["content-disposition"],
        format!("attachment; filename=\"demo_{id}.tar\"")
    );
    let length = all.content_length().unwrap();
    let bytes = all.bytes().await.unwrap();
    assert_eq!(bytes.len() as u64, length);
    let mut archive = tar::Archive::new(&bytes[..]);
    let files = tar_members(&mut archive);
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "cluster_events.json",
            "cluster_metadata.json",
            "demo_auto-assign__..__.tar",
            &format!("demo_auto-assign__..___{}.tar", host_id(2)),
            "controller_logs.tar.gz",
            "cluster_manifest_user_openshift_mine.yaml",
        ]
    );
    assert_eq!(files[4].1.len(), 20 << 20);
    // As with the peer, the archive of a host is within one of its own.
    let of_host = &mut tar::Archive::new(files[2].1.as_slice());
    let uploaded = (
        "demo_auto-assign__..__.tar.gz".to_owned(),
        b"BYTES".to_vec(),
    );
    assert_eq!(tar_members(of_host), [uploaded]);
}

/// Names and contents of the members.
fn tar_members(archive: &mut tar::Archive<&[u8]>) -> Vec<(String, Vec<u8>)> {
    let entries = archive.entries().unwrap();
    entries
        .map(|entry| {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().display().to_string();
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut entry, &mut bytes).unwrap();
            (name, bytes)
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn graceful_shutdown_drains_in_flight_requests() {
    let mut server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let (parts, body) = tokio::sync::mpsc::channel::<Result<&'static str, std::io::Error>>(1);
    let body = reqwest::Body::wrap_stream(futures_util::stream::unfold(body, async |mut body| {
        let part = body.recv().await?;
        Some((part, body))
    }));
    let upload = server
        .request(
            reqwest::Method::POST,
            &format!("/v2/clusters/{id}/logs?logs_type=controller"),
        )
        .header("content-type", "multipart/form-data; boundary=b")
        .body(body);
    let upload = tokio::spawn(Server::send(upload));
    let head = "--b\r\nContent-Disposition: form-data; name=\"upfile\"; filename=\"l\"\r\n\r\nBY";
    parts.send(Ok(head)).await.unwrap();
    let folder = server.work_dir().join(&id).join("logs/controller");
    server
        .until("the upload is in progress", async || {
            if folder.exists() {
                Ok(())
            } else {
                Err(folder.display())
            }
        })
        .await;
    let stopped = server.stop();
    parts.send(Ok("TES\r\n--b--\r\n")).await.unwrap();
    drop(parts);
    upload.await.unwrap().expect(204);
    stopped.await;
}

#[tokio::test(flavor = "multi_thread")]
async fn preparation_of_another_replica_is_not_disturbed() {
    let server = Server::start().await;
    let (id, host) = ready(&server).await;
    let path = format!("/v2/clusters/{id}");
    // The file lock of a replica that lost its database connection, and the advisory lock with it.
    let folder = server.work_dir().join("install-config-generate");
    std::fs::create_dir_all(&folder).unwrap();
    let lock = std::fs::File::create(folder.join(format!(".{id}.claim"))).unwrap();
    lock.lock().unwrap();
    server
        .post(&format!("{path}/actions/install"), &json!({}))
        .await
        .expect(202);
    // Meanwhile another cluster is created and prepared.
    let (other, other_host) = ready_with(&server, 2).await;
    let other = format!("/v2/clusters/{other}");
    server
        .post(&format!("{other}/actions/install"), &json!({}))
        .await
        .expect(202);
    reply_until(&server, &other_host, "installing").await;
    let cluster = server.get(&path).await.expect(200);
    assert_eq!(cluster["status"], "preparing-for-installation");
    assert!(cluster.get("openshift_cluster_id").is_none(), "{cluster}");
    drop(lock);
    reply_until(&server, &host, "installing").await;
    let cluster = wait_status(&server, &path, "installing").await;
    assert!(cluster["openshift_cluster_id"].is_string(), "{cluster}");
}
