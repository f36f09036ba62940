//! Requests to a simulated BMC: recorded, made faulty, authorized, answered.

use std::io;
use std::sync::Arc;

use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::header::IF_MATCH;
use hyper::{Request, Response};
use serde_json::{Map, Value, json};

use super::access::{SESSIONS, credentials, is_authorized, log_in, log_out};
use super::actions::{BmcChange, MONITORS, monitor};
use super::answer::{AnswerBody, BmcAnswer};
use super::documents;
use super::fault::BmcFault;
use super::simulated::SimulatedBmc;
use super::state::{BmcRequestRecord, CredentialUse};

/// Longest body of a request. Units: bytes.
const BODY_LIMIT: usize = 64 << 10;

/// Answers a request. Errors: the connection is closed without an answer.
pub(super) async fn answer(
    bmc: Arc<SimulatedBmc>,
    request: Request<Incoming>,
) -> io::Result<Response<AnswerBody>> {
    let (head, body) = request.into_parts();
    let method = head.method.as_str().to_owned();
    let target = head
        .uri
        .path_and_query()
        .map_or("/", |it| it.as_str())
        .to_owned();
    let body = Limited::new(body, BODY_LIMIT).collect().await;
    let Ok(body) = body.map(http_body_util::Collected::to_bytes) else {
        return Ok(BmcAnswer::empty(413).response());
    };
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    tokio::time::sleep(bmc.pace.request).await;
    let if_match = head
        .headers
        .get(IF_MATCH)
        .and_then(|value| value.to_str().ok());
    let record = BmcRequestRecord {
        method: method.clone(),
        path: target.clone(),
        credentials: credentials(&head.headers),
        body: without_password(body.clone()),
        if_match: if_match.map(str::to_owned),
    };
    let faults = {
        let mut state = bmc.state();
        state.record(record);
        state.faults(&method, &target)
    };
    if faults.contains(&BmcFault::Silent) {
        return std::future::pending().await;
    }
    if faults.contains(&BmcFault::Dropped) {
        return Err(io::ErrorKind::ConnectionReset.into());
    }
    if faults.contains(&BmcFault::ForgetsSession) {
        bmc.end_sessions();
    }
    let path = target
        .split('?')
        .next()
        .unwrap_or_default()
        .trim_end_matches('/');
    let is_open = path == "/redfish/v1" || (method == "POST" && path == SESSIONS);
    let answer = if let Some(answer) = replaced(&bmc, &faults) {
        answer
    } else if !is_open && !is_authorized(&bmc, &head.headers) {
        BmcAnswer::error(401, "NoValidSession", "there is no valid session", &[])
    } else {
        let change = BmcChange {
            bmc: &bmc,
            path,
            body: &body,
            if_match,
            faults: &faults,
        };
        dispatch(&change, &method)
    };
    if faults.contains(&BmcFault::DroppedAfter) {
        return Err(io::ErrorKind::ConnectionReset.into());
    }
    Ok(spoiled(answer, &faults, &target).response())
}

fn dispatch(change: &BmcChange<'_>, method: &str) -> BmcAnswer {
    let (bmc, path) = (change.bmc, change.path);
    let profile = bmc.profile;
    let session = path.strip_prefix(SESSIONS).filter(|_| profile.has_sessions);
    match (method, session, path.strip_prefix(MONITORS)) {
        ("POST", Some(""), _) => log_in(bmc, change.body),
        ("DELETE", Some(id), _) => log_out(bmc, id.trim_start_matches('/')),
        ("GET", _, Some(id)) => monitor(bmc, id),
        ("GET", None, None) => documents::read(bmc, path),
        ("POST", None, None) => change.act(),
        ("PATCH", None, None) => change.write(),
        _ => BmcAnswer::not_found(),
    }
}

/// The answer in place of the right one.
fn replaced(bmc: &SimulatedBmc, faults: &[BmcFault]) -> Option<BmcAnswer> {
    faults.iter().find_map(|fault| match fault {
        BmcFault::Status(status) => Some(BmcAnswer::error(
            *status,
            "GeneralError",
            "a fault was asked for",
            &[],
        )),
        BmcFault::Busy(seconds) => {
            let answer = BmcAnswer::error(
                503,
                "ServiceTemporarilyUnavailable",
                "the BMC restarts",
                &[],
            );
            Some(answer.with_header("Retry-After", &seconds.to_string()))
        }
        BmcFault::Redirect(to) => Some(BmcAnswer::empty(307).with_header("Location", to)),
        BmcFault::Page => Some(BmcAnswer::text("<html>Welcome</html>".to_owned())),
        BmcFault::Sized(size) => Some(BmcAnswer::text(format!("{{}}{}", " ".repeat(size - 2)))),
        BmcFault::Nested(depth) => {
            let (open, close) = ("[".repeat(depth - 1), "]".repeat(depth - 1));
            Some(BmcAnswer::text(format!("{{\"a\":{open}{close}}}")))
        }
        BmcFault::RepeatsPassword => {
            let text = format!("the password {} of {} was not used", bmc.password, bmc.user);
            Some(BmcAnswer::error(400, "GeneralError", &text, &[]))
        }
        _ => None,
    })
}

/// An answer with the faults of its form.
fn spoiled(mut answer: BmcAnswer, faults: &[BmcFault], target: &str) -> BmcAnswer {
    for fault in faults {
        answer = match fault {
            BmcFault::Truncated => answer.truncated(),
            BmcFault::Endless => answer.endless(),
            BmcFault::HalfDocument => {
                let content = answer.content();
                BmcAnswer::text(content.chars().take(content.len() / 2).collect())
            }
            BmcFault::ForeignLinks(origin) => {
                relink(&mut answer.body, origin);
                answer
            }
            BmcFault::EndlessPages if answer.body["Members"].is_array() => {
                answer.body["Members@odata.nextLink"] = json!(format!("{target}?$skip=1"));
                answer
            }
            _ => answer,
        };
    }
    answer
}

/// Lets all links lead to another origin.
fn relink(value: &mut Value, origin: &str) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                match (name.as_str(), value.as_str()) {
                    ("@odata.id" | "target", Some(path)) => {
                        *value = json!(format!("{origin}{path}"));
                    }
                    _ => relink(value, origin),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| relink(item, origin)),
        _ => {}
    }
}

fn without_password(body: Value) -> Value {
    let Value::Object(map) = body else {
        return body;
    };
    let hidden = map.into_iter().map(|(name, value)| match name.as_str() {
        "Password" => (name, json!("***")),
        _ => (name, value),
    });
    Value::Object(hidden.collect::<Map<_, _>>())
}

impl BmcRequestRecord {
    /// Whether the request carries credentials.
    pub fn has_credentials(&self) -> bool {
        self.credentials != CredentialUse::None || self.body["Password"].is_string()
    }
}
