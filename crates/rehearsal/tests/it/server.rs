//! A server that creates records, accepts hosts, and never finds a cluster ready.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

pub(crate) const CLUSTER: &str = "5a2a1b6e-8a4b-4b0e-9d0c-0f7f2f6f0a1";
pub(crate) const INFRA_ENV: &str = "6a2a1b6e-8a4b-4b0e-9d0c-0f7f2f6f0a11";

#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) url: String,
    /// Permits of responses to requests for a new cluster.
    pub(crate) creations: Arc<Semaphore>,
    /// Number of the cluster that is created without an id.
    pub(crate) broken: Option<usize>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) async fn start(change: impl FnOnce(&mut Self)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut server = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            creations: Arc::new(Semaphore::new(100)),
            broken: None,
            requests: Arc::default(),
        };
        change(&mut server);
        let router = Router::new().fallback(respond).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        server
    }

    /// Number of requests whose method and path below the API's base begin with a text.
    pub(crate) fn count(&self, start: &str) -> usize {
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|one| one.starts_with(start)).count()
    }

    /// Waits for a request.
    pub(crate) async fn until(&self, start: &str) {
        for _ in 0..3000 {
            if self.count(start) > 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no {start} among {:?}", self.requests.lock().unwrap());
    }
}

async fn respond(State(server): State<Server>, method: Method, uri: Uri, body: Bytes) -> Response {
    let path = uri.path().trim_start_matches("/api/assisted-install");
    let (last, request) = (path.rsplit('/').next(), format!("{method} {path}"));
    server.requests.lock().unwrap().push(request.clone());
    let (status, body) = match (method.as_str(), last.unwrap_or_default()) {
        ("GET", "openshift-versions") => (200, json!({ "4.20.4": { "default": true } })),
        ("POST", "clusters") => {
            let number = server.count(&request) - 1;
            server.creations.acquire().await.unwrap().forget();
            let id = format!("{CLUSTER}{number}");
            let record = json!({ "id": id });
            let is_broken = server.broken == Some(number);
            (201, if is_broken { json!({}) } else { record })
        }
        ("POST", "infra-envs") => (201, json!({ "id": INFRA_ENV })),
        ("GET", "files") => (200, ignition(&server.url)),
        ("POST", "hosts") => (201, registered(&body)),
        ("DELETE", _) => (204, Value::Null),
        ("GET", id) if id.starts_with(CLUSTER) => {
            let host = json!({ "id": "1", "requested_hostname": "a", "status": "discovering" });
            (
                200,
                json!({ "id": id, "name": "c", "status": "insufficient", "hosts": [host] }),
            )
        }
        ("GET", "events") => (200, json!([])),
        ("GET", "instructions") => (
            200,
            json!({ "next_instruction_seconds": 60, "post_step_action": "continue" }),
        ),
        _ => (404, json!({ "code": "404", "reason": "no such path" })),
    };
    (StatusCode::from_u16(status).unwrap(), body.to_string()).into_response()
}

/// The response to a registration.
fn registered(body: &[u8]) -> Value {
    let host: Value = serde_json::from_slice(body).unwrap();
    let arguments = json!({ "infra_env_id": INFRA_ENV, "host_id": host["host_id"], "agent_version": "q.io/agent:1" });
    json!({ "next_step_runner_command": { "command": "", "args": [arguments.to_string()] } })
}

fn ignition(url: &str) -> Value {
    let contents = format!(
        "[Service]\nExecStart=/usr/local/bin/agent --url {url} --infra-env-id {INFRA_ENV} --agent-version q.io/agent:1\n"
    );
    json!({ "ignition": { "version": "3.1.0" },
        "systemd": { "units": [{ "name": "agent.service", "enabled": true, "contents": contents }] } })
}
