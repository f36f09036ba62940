//! A proxy with faults between a client and a registry, which answers some requests by itself.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use mirror::publish::MirrorTarget;
use oci_client::{Client, ClientOptions};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::server::Server;

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// That status is answered.
    Status(u16),
    /// Too many requests, with Retry-After in seconds.
    Busy(u64),
    /// The connection breaks: in the middle of an answer that has a body, or else before there is one.
    Reset,
    /// The request is processed, and the connection breaks before the reply.
    Lost,
    /// Half of the answer is sent as if it were all.
    Short,
    /// The last byte of the answer is another one.
    Wrong,
    /// So many are answered; those after them wait until [`Faulty::release`].
    Held(usize),
    /// A mount is answered like an upload.
    NotMounted,
}

/// Requests that meet a fault.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) method: &'static str,
    /// Part of the path.
    pub(crate) path: String,
    /// How many of them; later ones are forwarded.
    pub(crate) times: usize,
    pub(crate) fault: Fault,
}

pub(crate) struct Faulty {
    pub(crate) address: String,
    pub(crate) client: Client,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

struct Shared {
    upstream: String,
    http: reqwest::Client,
    /// Rules with the number of their matches.
    rules: Mutex<Vec<(Rule, usize)>>,
    requests: Mutex<Vec<String>>,
    /// Whether held requests are released.
    released: watch::Sender<bool>,
}

impl Faulty {
    pub(crate) async fn start(upstream: &Server, rules: Vec<Rule>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = Arc::new(Shared {
            upstream: upstream.address.clone(),
            http: service::http_client(None, false).unwrap(),
            rules: Mutex::new(rules.into_iter().map(|rule| (rule, 0)).collect()),
            requests: Mutex::default(),
            released: watch::Sender::new(false),
        });
        let router = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
        let options = ClientOptions {
            plain_http: true,
            ..ClientOptions::default()
        };
        Self {
            address,
            client: Client::new(options).unwrap(),
            shared,
            serving,
        }
    }

    /// As a target, below a namespace.
    pub(crate) fn target(&self) -> MirrorTarget {
        MirrorTarget {
            client: self.client.clone(),
            registry: oci::Registry::Host(self.address.clone()),
            namespace: "ns".into(),
            max_components: 0,
        }
    }

    /// From now on these faults are met, and no others.
    pub(crate) fn meet(&self, rules: Vec<Rule>) {
        let mut met = self.shared.rules.lock().unwrap();
        *met = rules.into_iter().map(|rule| (rule, 0)).collect();
    }

    /// Rules that no request matched.
    pub(crate) fn unmet(&self) -> Vec<String> {
        let met = self.shared.rules.lock().unwrap();
        let unmet = met.iter().filter(|(_, times)| *times == 0);
        unmet.map(|(rule, _)| format!("{rule:?}")).collect()
    }

    /// Releases held requests, and later ones.
    pub(crate) fn release(&self) {
        self.shared.released.send_replace(true);
    }

    /// Method and path of all requests so far that have `part` in them.
    pub(crate) fn requests(&self, part: &str) -> Vec<String> {
        let requests = self.shared.requests.lock().unwrap();
        requests
            .iter()
            .filter(|it| it.contains(part))
            .cloned()
            .collect()
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Shared {
    fn fault(&self, method: &str, path: &str) -> Option<Fault> {
        let mut rules = self.rules.lock().unwrap();
        let (rule, met) = rules
            .iter_mut()
            .find(|(rule, _)| rule.method == method && path.contains(&rule.path))?;
        let before = *met;
        *met += 1;
        let is_met = match rule.fault {
            Fault::Held(answered) => before >= answered && !*self.released.borrow(),
            _ => before < rule.times,
        };
        is_met.then_some(rule.fault)
    }

    async fn forward(&self, request: Request) -> (StatusCode, HeaderMap, Bytes) {
        let (parts, body) = request.into_parts();
        let url = format!("http://{}{}", self.upstream, parts.uri);
        // With the requested host: the registry's own links lead here.
        let mut forwarded = self
            .http
            .request(parts.method, url)
            .headers(parts.headers.clone());
        if parts.headers.contains_key(header::CONTENT_LENGTH) {
            forwarded = forwarded.body(reqwest::Body::wrap_stream(body.into_data_stream()));
        }
        // The client may have closed the connection.
        let Ok(response) = forwarded.send().await else {
            hang_up();
        };
        let (status, headers) = (response.status(), response.headers().clone());
        (status, headers, response.bytes().await.unwrap())
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (method, path) = (request.method().to_string(), request.uri().to_string());
    shared
        .requests
        .lock()
        .unwrap()
        .push(format!("{method} {path}"));
    let fault = shared.fault(&method, &path);
    if let Some(Fault::Held(_)) = fault {
        let mut released = shared.released.subscribe();
        // The sender lives as long as the proxy.
        let _ = released.wait_for(|it| *it).await;
    }
    let refusal = match fault {
        Some(Fault::Status(status)) => Some((status, None)),
        Some(Fault::Busy(seconds)) => Some((429, Some(seconds))),
        _ => None,
    };
    if let Some((status, after)) = refusal {
        let mut response = Response::builder().status(status);
        if let Some(seconds) = after {
            response = response.header(header::RETRY_AFTER, seconds);
        }
        return response.body(Body::empty()).unwrap();
    }
    if fault == Some(Fault::Reset) && method != "GET" {
        hang_up();
    }
    let mut request = request;
    if fault == Some(Fault::NotMounted) {
        *request.uri_mut() = request.uri().path().parse().unwrap();
    }
    let (status, headers, body) = shared.forward(request).await;
    match fault {
        Some(Fault::Reset) => broken(status, headers, &body),
        Some(Fault::Lost) => hang_up(),
        Some(Fault::Short) => whole(status, headers, body.slice(..body.len() / 2), true),
        Some(Fault::Wrong) => {
            let mut body = body.to_vec();
            *body.last_mut().unwrap() ^= 1;
            whole(status, headers, body.into(), true)
        }
        _ => whole(status, headers, body, method != "HEAD"),
    }
}

/// Ends the connection without a reply.
fn hang_up() -> ! {
    std::panic::resume_unwind(Box::new(()))
}

fn whole(status: StatusCode, mut headers: HeaderMap, body: Bytes, has_length: bool) -> Response {
    if has_length {
        headers.insert(header::CONTENT_LENGTH, body.len().into());
    }
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Half of the body, and then the connection ends.
fn broken(status: StatusCode, mut headers: HeaderMap, body: &Bytes) -> Response {
    headers.insert(header::CONTENT_LENGTH, body.len().into());
    let half: Result<Bytes, std::io::Error> = Ok(body.slice(..body.len() / 2));
    let end = Err(std::io::Error::other("the connection breaks here"));
    let mut response = Response::new(Body::from_stream(stream::iter([half, end])));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}
