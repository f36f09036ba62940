//! Metrics of installations. Tests of this process share its metrics: they only grow.

use reqwest::Method;
use serde_json::json;

use crate::harness::{Server, inventory};
use crate::installation::{install_single_node, ready};

const PREFIX: &str = "service_assisted_installer_";

async fn start() -> Server {
    Server::with(|settings| settings.http.metrics_on_public_port = true).await
}

/// The text of `/metrics`.
async fn scrape(server: &Server) -> String {
    let url = format!("{}/metrics", server.url);
    let request = service::http_client(None, false)
        .unwrap()
        .request(Method::GET, url);
    Server::send(request).await.text
}

/// Value of a series; zero when it is absent.
fn value(text: &str, series: &str) -> f64 {
    let start = format!("{PREFIX}{series} ");
    let found = text.lines().find_map(|line| line.strip_prefix(&start));
    found.map_or(0.0, |value| value.parse().unwrap())
}

/// Asserts that each series grew, or appears in time.
async fn grew(server: &Server, before: &str, series: &[&str]) {
    for one in series {
        server
            .until(&format!("{one} grew"), async || {
                let text = scrape(server).await;
                let (old, new) = (value(before, one), value(&text, one));
                if new > old {
                    Ok(())
                } else {
                    Err(format!("{old} {new}"))
                }
            })
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn installations_are_measured() {
    let server = start().await;
    let before = scrape(&server).await;
    let (cluster, host) = install_single_node(&server).await;
    // An installation may end between two passes of the monitor; this one does not end.
    let (other, waiting) = ready(&server).await;
    let path = format!("/v2/clusters/{other}/actions/install");
    server.post(&path, &json!({})).await.expect(202);
    crate::installation::reply_until(&server, &waiting, "installing").await;
    let series = [
        "cluster_creations",
        "cluster_installation_started",
        r#"cluster_installation_seconds_count{result="installed"}"#,
        r#"host_installation_phase_seconds_count{phase="Writing image to disk",result="Done"}"#,
        r#"cluster_hosts{role="bootstrap",result="Done"}"#,
        r#"cluster_host_cores_bucket{role="bootstrap",result="Done",le="16"}"#,
        r#"cluster_host_ram_gb_bucket{role="bootstrap",result="Done",le="64"}"#,
        r#"cluster_host_disk_gb_bucket{diskType="SSD",role="bootstrap",result="Done",le="500"}"#,
        r#"cluster_host_nic_gb_count{role="bootstrap",result="Done"}"#,
        r#"cluster_host_disk_sync_duration_ms_bucket{le="5"}"#,
        r#"cluster_image_pull_status_sum{imageName="registry.example.com:5000/edge/installer:v1",result="success"}"#,
        "monitored_clusters_duration_ms_count",
        r#"monitored_clusters_cycle_duration_ms_count{fullscan="true"}"#,
        r#"monitored_hosts_cycle_duration_ms_count{fullscan="true"}"#,
        r#"operation_duration_miliseconds_count{operation="ClusterMonitoring"}"#,
        r#"operation_duration_miliseconds_count{operation="HostMonitoring"}"#,
    ];
    grew(&server, &before, &series).await;
    let text = scrape(&server).await;
    assert!(text.contains("# TYPE service_assisted_installer_cluster_creations counter\n"));
    let usage = value(&text, "filesystem_usage_percentage");
    assert!((0.0..=100.0).contains(&usage), "{usage}");
    // The host's own id is its name in the path.
    let id = host.rsplit('/').next().unwrap();
    assert!(!text.contains(id) && !text.contains(&cluster), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_installations_are_measured() {
    let server = start().await;
    let (cluster, host) = ready(&server).await;
    let before = scrape(&server).await;
    let path = format!("/v2/clusters/{cluster}/actions");
    let act = async |action: &str| server.post(&format!("{path}/{action}"), &json!({})).await;
    act("install").await.expect(202);
    crate::installation::reply_until(&server, &host, "installing").await;
    act("cancel").await.expect(202);
    let ended = r#"cluster_installation_seconds_count{result="cancelled"}"#;
    grew(&server, &before, &["cluster_installation_started", ended]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_validations_are_counted() {
    let server = start().await;
    let (cluster, host) = ready(&server).await;
    let before = scrape(&server).await;
    let mut small = inventory(1);
    small["cpu"]["count"] = json!(1);
    server.reply(&host, "inventory", &small).await.expect(204);
    let changed = "failed_after_success_before_installation";
    let host_changed =
        format!(r#"host_validation_{changed}{{hostValidationType="has-min-cpu-cores"}}"#);
    let cluster_changed = format!(
        r#"cluster_validation_{changed}{{clusterValidationType="all-hosts-are-ready-to-install"}}"#
    );
    grew(&server, &before, &[&host_changed, &cluster_changed]).await;

    let deleted = "is_in_failed_status_on_cluster_deletion";
    server
        .delete(&format!("/v2/clusters/{cluster}"))
        .await
        .expect(204);
    let host_failed =
        format!(r#"host_validation_{deleted}{{hostValidationType="has-min-cpu-cores"}}"#);
    let cluster_failed = format!(
        r#"cluster_validation_{deleted}{{clusterValidationType="all-hosts-are-ready-to-install"}}"#
    );
    grew(&server, &before, &[&host_failed, &cluster_failed]).await;
}

/// An agent may name any image: one series for all that the server did not ask for.
#[tokio::test(flavor = "multi_thread")]
async fn images_that_nothing_asked_for_share_a_series() {
    let server = start().await;
    let pool = server.infra_env(None).await;
    let host = server.host(&pool, 1).await;
    let before = scrape(&server).await;
    let images = ["quay.example.com/a:1", "quay.example.com/b:1"].map(|name| {
        json!({ "name": name, "result": "success", "size_bytes": 1e8, "time": 1.0, "download_rate": 100.0 })
    });
    let output = json!({ "images": images });
    server
        .reply(&host, "container-image-availability", &output)
        .await
        .expect(204);
    let shared = r#"cluster_image_pull_status_count{imageName="other",result="success"}"#;
    grew(&server, &before, &[shared]).await;
    let text = scrape(&server).await;
    assert!(value(&text, shared) >= value(&before, shared) + 2.0);
    assert!(!text.contains("quay.example.com"), "{text}");
}
