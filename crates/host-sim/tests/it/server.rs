//! A server that responds from a script and records its requests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// A recorded request: method, path below the API's base, and body.
pub(crate) type RecordedRequest = (String, Value);

#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) url: String,
    script: Arc<Mutex<Script>>,
}

#[derive(Default)]
struct Script {
    registrations: VecDeque<(u16, Value)>,
    instructions: VecDeque<(u16, Value)>,
    asked: Vec<RecordedRequest>,
}

impl Server {
    /// Starts a server. The last entry of a script repeats.
    pub(crate) async fn start(
        registrations: Vec<(u16, Value)>,
        instructions: Vec<(u16, Value)>,
    ) -> Self {
        let script = Script {
            registrations: registrations.into(),
            instructions: instructions.into(),
            asked: Vec::new(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = Self {
            url,
            script: Arc::new(Mutex::new(script)),
        };
        let router = Router::new().fallback(answer).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        server
    }

    pub(crate) fn asked(&self, start: &str) -> Vec<RecordedRequest> {
        let script = self.script.lock().unwrap();
        script
            .asked
            .iter()
            .filter(|(what, _)| what.starts_with(start))
            .cloned()
            .collect()
    }

    /// Waits until a condition on the recorded requests holds.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..3000 {
            if holds(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("still not: {what}; asked was {:?}", self.asked(""));
    }
}

async fn answer(State(server): State<Server>, method: Method, uri: Uri, body: Bytes) -> Response {
    let path = uri
        .path()
        .trim_start_matches("/api/assisted-install")
        .to_owned();
    let mut script = server.script.lock().unwrap();
    script.asked.push((
        format!("{method} {path}"),
        serde_json::from_slice(&body).unwrap_or_default(),
    ));
    let (status, body) = match (method.as_str(), path.rsplit('/').next()) {
        ("POST", Some("hosts")) => next(&mut script.registrations),
        ("GET", Some("instructions")) => next(&mut script.instructions),
        ("POST", Some("instructions")) => (204, Value::Null),
        _ => (404, json!({ "code": 404, "message": "not in the script" })),
    };
    (StatusCode::from_u16(status).unwrap(), body.to_string()).into_response()
}

fn next(script: &mut VecDeque<(u16, Value)>) -> (u16, Value) {
    if script.len() > 1 {
        script.pop_front().unwrap()
    } else {
        script.front().cloned().unwrap()
    }
}
