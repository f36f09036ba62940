//! The page in a real browser, over a fake API.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::extract::{OriginalUri, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use testkit::chromium::{self, Visit};

use crate::server::{self, Server};

const CLUSTER: &str = "0cfb5b40-40a4-4966-960d-75583eeb7339";
const OTHER: &str = "2aecdc35-5327-4d08-a162-87ffc0d636a0";
const REFUSED: &str = "6e956b78-e1de-4782-b4e1-171fa03e316f";
const INFRA_ENV: &str = "a5350688-072b-42a5-b8a4-f643cc02ca7e";
const HOST: &str = "0b708afa-d843-80cb-43c2-bab67bb7ac20";
/// A name that would load an image, run a script and hide the page if it were parsed as HTML.
const EVIL: &str =
    r#"<img src="http://outside.test/x" onerror="document.body.textContent='taken'">"#;
const TOO_LITTLE: &str = "Memory: the host has 4096 MiB, needs 8192 MiB";
const NO_DNS: &str = "The base domain is not set";
const PASSWORD: &str = "sEcrt-sEcrt-sEcrt-sEcrt";

/// The API, with the requests that it got.
#[derive(Clone, Default)]
struct Fake {
    asked: Arc<Mutex<Vec<String>>>,
    /// Responses that fail, counted from 1.
    fails: Range<usize>,
    /// Changes are refused.
    is_read_only: bool,
    is_empty: bool,
}

impl Fake {
    fn was_asked(&self, part: &str) -> bool {
        let asked = self.asked.lock().unwrap();
        asked.iter().any(|request| request.contains(part))
    }
}

async fn answer(
    State(fake): State<Fake>,
    OriginalUri(uri): OriginalUri,
    method: Method,
    body: String,
) -> Response {
    let request = match method {
        Method::GET => uri.to_string(),
        _ => format!("{method} {uri} {body}"),
    };
    let count = {
        let mut asked = fake.asked.lock().unwrap();
        asked.push(request.clone());
        asked.len()
    };
    if fake.fails.contains(&count) {
        let reason = json!({ "code": "503", "reason": "the database is away" });
        return (StatusCode::SERVICE_UNAVAILABLE, Json(reason)).into_response();
    }
    if fake.is_read_only && method != Method::GET {
        let reason = json!({ "code": 403, "message": "you may only read it" });
        return (StatusCode::FORBIDDEN, Json(reason)).into_response();
    }
    let path = uri.path().strip_prefix("/api/assisted-install/v2/");
    let changed = format!("infra-envs/{INFRA_ENV}");
    let one = format!("clusters/{CLUSTER}");
    let credentials = format!("clusters/{OTHER}/credentials");
    let body = match path.unwrap_or_default().trim_end_matches('/') {
        "openshift-versions" if fake.is_empty => json!({}),
        _ if fake.is_empty => json!([]),
        "clusters" => json!([cluster(), installed(), refused()]),
        path if path == one => cluster(),
        path if path == format!("clusters/{OTHER}") => installed(),
        path if path == format!("clusters/{REFUSED}") => refused(),
        path if path == credentials => json!({
            "username": "kubeadmin", "password": PASSWORD, "console_url": "javascript:alert(1)",
        }),
        "infra-envs" => json!([infra_env(&fake)]),
        path if path == changed => infra_env(&fake),
        "events" => return events().into_response(),
        "doctor" if fake.is_read_only => {
            let reason = json!({ "code": 403, "message": "only administrators may do this" });
            return (StatusCode::FORBIDDEN, Json(reason)).into_response();
        }
        "doctor" => checks(),
        "openshift-versions" => json!({
            "4.18.30": { "display_name": "4.18.30", "support_level": "production", "cpu_architectures": ["x86_64"] },
        }),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    Json(body).into_response()
}

fn validations(id: &str, message: &str) -> String {
    json!({ "group": [
        { "id": id, "status": "failure", "message": message },
        { "id": "fine", "status": "success", "message": "not shown" },
    ] })
    .to_string()
}

fn cluster() -> Value {
    json!({
        "id": CLUSTER, "name": EVIL, "status": "insufficient", "status_info": "It cannot be installed",
        "openshift_version": "4.18.30", "created_at": "2026-11-21T13:05:43Z", "total_host_count": 1,
        "validations_info": validations("dns-domain-defined", NO_DNS),
        "hosts": [{
            "id": HOST, "requested_hostname": "worker-7", "status": "insufficient", "role": "worker",
            "inventory": json!({ "hostname": "x", "memory": { "physical_bytes": 4_u64 << 30 } }).to_string(),
            "validations_info": validations("has-min-memory", TOO_LITTLE),
        }],
    })
}

fn installed() -> Value {
    json!({
        "id": OTHER, "name": "north", "status": "installed", "status_info": "The cluster is installed",
        "openshift_version": "4.18.30", "created_at": "2026-11-20T13:05:43Z", "hosts": [], "total_host_count": 5,
    })
}

fn refused() -> Value {
    json!({
        "id": REFUSED, "name": "west", "status": "ready", "status_info": "It can be installed",
        "created_at": "2026-11-19T13:05:43Z", "hosts": [{
            "id": HOST, "requested_hostname": "worker-9", "status": "disconnected", "status_info": "It does not call",
        }],
        "last-installation-preparation": { "status": "failed", "reason": "the registry is away" },
    })
}

fn infra_env(fake: &Fake) -> Value {
    let mut record = json!({
        "id": INFRA_ENV, "name": "rack", "cluster_id": CLUSTER, "type": "full-iso",
        "download_url": "http://127.0.0.1:8888/byid/full.iso", "created_at": "2026-11-21T13:05:43Z",
    });
    let asked = fake.asked.lock().unwrap();
    let change = asked.iter().rfind(|one| one.starts_with("PATCH"));
    // As the API: absent when false.
    if !fake.is_read_only && change.is_some_and(|one| one.contains("true")) {
        record["embedded_agent"] = json!(true);
    }
    record
}

fn events() -> impl IntoResponse {
    let body = json!([{
        "cluster_id": CLUSTER, "severity": "warning", "event_time": "2026-11-21T13:05:43Z",
        "message": format!("Something happened to {EVIL}"),
    }]);
    let headers = [
        ("event-count", "60"),
        ("severity-count-info", "59"),
        ("severity-count-warning", "1"),
    ];
    (headers, Json(body))
}

fn checks() -> Value {
    let check = |id: &str, status: &str, finding: &str, remedy: &str| json!({ "id": id, "group": "services", "status": status, "finding": finding, "remedy": remedy });
    json!({ "checks": [
        check("memory", "passed", "8192 MiB are available", ""),
        check("os-image", "warning", EVIL, "name one in OS_IMAGES"),
        check("database:db:5432/installer", "failed", "refuses the password", "correct DB_USER"),
    ] })
}

async fn serve(fake: &Fake) -> Server {
    let ready = get(|| async {});
    let router = Router::new()
        .route("/ready", ready)
        .fallback(answer)
        .with_state(fake.clone());
    server::api(router).await
}

/// The status page at `path`; nothing without a browser.
async fn visit(fake: &Fake, path: &str, seconds: u32) -> Option<Visit> {
    let browser = chromium::find()?;
    let api = serve(fake).await;
    let webui = server::webui(api.address).await;
    Some(
        chromium::visit(&browser, &webui.url(path), seconds)
            .await
            .unwrap(),
    )
}

/// The page of that path with a script that acts as a user.
async fn act(fake: &Fake, path: &str, script: &str) -> Option<Visit> {
    let browser = chromium::find()?;
    let root = tempfile::tempdir().unwrap();
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/status");
    let index = std::fs::read_to_string(web.join("index.html")).unwrap();
    // Scripts run in their order: the address first, which the page reads.
    let [entering, acting] = ["/enter.js", "/act.js"]
        .map(|path| format!(r#"<script type="module" src="{path}"></script>"#));
    let index = index
        .replace("<script", &format!("{entering}<script"))
        .replace("</head>", &format!("{acting}</head>"));
    let enter = format!(r#"history.replaceState(null, "", "{path}");"#);
    for (name, content) in [
        ("index.html", index.as_str()),
        ("enter.js", &enter),
        ("act.js", script),
    ] {
        std::fs::write(root.path().join(name), content).unwrap();
    }
    let api = serve(fake).await;
    let webui = server::webui_of(api.address, root.path().to_owned()).await;
    Some(chromium::visit(&browser, &webui.url("/"), 8).await.unwrap())
}

/// Asserts that the page shows these texts, sent no request elsewhere, and kept its security policy.
fn assert_shows(visit: &Visit, texts: &[&str]) {
    for text in texts {
        assert!(visit.dom.contains(text), "{text} is not in {}", visit.dom);
    }
    let nothing: [&str; 0] = [];
    assert_eq!(visit.outside, nothing, "asked outside");
    assert_eq!(visit.console, nothing, "said in the console");
    assert!(!visit.dom.contains("<img src=\"http"), "{}", visit.dom);
    assert!(!visit.dom.contains("href=\"javascript"), "{}", visit.dom);
}

const EVIL_AS_TEXT: &str = "&lt;img src=\"http://outside.test/x\"";
const NO_NOTICE: &str = r#"role="alert" hidden="""#;

#[tokio::test]
async fn requests_to_others_would_be_seen() {
    let fake = Fake::default();
    let load = r#"new Image().src = "http://outside.test/x";"#;
    let Some(refused) = act(&fake, "/status/", load).await else {
        return;
    };
    let console = refused.console.join("\n");
    assert!(console.contains("Content Security Policy"), "{console}");
    let browser = chromium::find().unwrap();
    let outside = chromium::visit(&browser, "http://outside.test/x", 1)
        .await
        .unwrap();
    let asked = outside.outside.join("\n");
    assert!(asked.contains("http://outside.test/x"), "{asked}");
}

#[tokio::test]
async fn clusters_are_listed() {
    let fake = Fake::default();
    let Some(visit) = visit(&fake, "/status/", 4).await else {
        return;
    };
    assert_shows(
        &visit,
        &[
            "north",
            "Installed",
            "Insufficient",
            NO_DNS,
            "5 hosts",
            EVIL_AS_TEXT,
            NO_NOTICE,
        ],
    );
}

#[tokio::test]
async fn a_cluster_lists_its_failed_validations() {
    let fake = Fake::default();
    let Some(visit) = visit(&fake, &format!("/status/clusters/{CLUSTER}"), 4).await else {
        return;
    };
    let image = r#"href="http://127.0.0.1:8888/byid/full.iso""#;
    assert_shows(
        &visit,
        &[
            "Blocking issues",
            NO_DNS,
            "worker-7",
            TOO_LITTLE,
            "has-min-memory",
            "4 GiB",
            image,
            "Something happened to",
            "Page 1 of 3",
            EVIL_AS_TEXT,
            NO_NOTICE,
        ],
    );
    assert!(!visit.dom.contains("not shown"));
    assert!(!visit.dom.contains("Download kubeconfig"));
}

#[tokio::test]
async fn a_refused_installation_and_disconnected_hosts_are_shown() {
    let fake = Fake::default();
    let Some(visit) = visit(&fake, &format!("/status/clusters/{REFUSED}"), 4).await else {
        return;
    };
    let texts = [
        "It can be installed",
        "The last preparation failed: the registry is away",
        "worker-9</a> – It does not call",
    ];
    assert_shows(&visit, &texts);
}

#[tokio::test]
async fn the_password_is_shown_on_request() {
    let fake = Fake::default();
    let path = format!("/status/clusters/{OTHER}");
    let Some(unasked) = visit(&fake, &path, 8).await else {
        return;
    };
    assert_shows(
        &unasked,
        &["Download kubeconfig", "Show kubeadmin password"],
    );
    assert!(!unasked.dom.contains(PASSWORD));
    assert!(!fake.was_asked("/credentials"));
    let click = r#"
        const find = () => [...document.querySelectorAll("button")].find(({ textContent }) => textContent.startsWith("Show"));
        const timer = setInterval(() => { const button = find(); if (button) { clearInterval(timer); button.click(); } }, 100);
    "#;
    let asked = act(&fake, &path, click).await.unwrap();
    // It stays over the refreshes that come meanwhile.
    assert_shows(&asked, &[PASSWORD, "Hide password"]);
}

#[tokio::test]
async fn the_password_does_not_stay_in_a_page_that_was_left() {
    let fake = Fake::default();
    let leave = r#"
        let step = 0;
        const steps = [
            () => [...document.querySelectorAll("button")].find(({ textContent }) => textContent.startsWith("Show")),
            () => document.body.textContent.includes("sEcrt") && document.querySelector('#nav a[href="/status/versions"]'),
            () => document.body.textContent.includes("production") || document.querySelector("h1")?.textContent === "Versions"
                ? { click: () => history.back() } : null,
        ];
        const timer = setInterval(() => {
            const target = steps[step]?.();
            if (!target) return;
            step += 1;
            if (step === steps.length) clearInterval(timer);
            target.click();
        }, 100);
    "#;
    let path = format!("/status/clusters/{OTHER}");
    let Some(visit) = act(&fake, &path, leave).await else {
        return;
    };
    assert!(fake.was_asked("/credentials") && fake.was_asked("/openshift-versions"));
    assert_shows(&visit, &["Show kubeadmin password"]);
    assert!(!visit.dom.contains(PASSWORD));
}

/// Clicks the checkbox of the agent `times`, each click after the previous change. The page's `data-agent` is its state.
fn click_agent(times: usize) -> String {
    format!(
        r#"
        let left = {times};
        setInterval(() => {{
            const box = document.querySelector('input[aria-describedby^="agent-help"]');
            if (!box || box.disabled) return;
            document.body.dataset.agent = box.checked;
            if (left > 0) {{ left -= 1; box.click(); }}
        }}, 100);
    "#
    )
}

#[tokio::test]
async fn the_agent_is_put_into_the_image_and_taken_out() {
    for (clicks, is_embedded) in [(1, true), (2, false)] {
        for path in [
            "/status/infra-envs".to_owned(),
            format!("/status/clusters/{CLUSTER}"),
        ] {
            let fake = Fake::default();
            let Some(visit) = act(&fake, &path, &click_agent(clicks)).await else {
                return;
            };
            let state = format!(r#"data-agent="{is_embedded}""#);
            assert_shows(
                &visit,
                &["Agent inside the image", "container registry", &state],
            );
            let asked = fake.asked.lock().unwrap();
            let changes = asked.iter().filter(|one| one.starts_with("PATCH"));
            let url = format!("/api/assisted-install/v2/infra-envs/{INFRA_ENV}");
            let expected = [true, false]
                .map(|value| format!("PATCH {url} {}", json!({ "embedded_agent": value })));
            assert_eq!(
                changes.collect::<Vec<_>>(),
                Vec::from_iter(&expected[..clicks])
            );
        }
    }
}

#[tokio::test]
async fn a_refused_change_of_the_agent_is_shown_and_undone() {
    let fake = Fake {
        is_read_only: true,
        ..Fake::default()
    };
    let Some(visit) = act(&fake, "/status/infra-envs", &click_agent(1)).await else {
        return;
    };
    for text in ["Not changed: You may only read it", r#"data-agent="false""#] {
        assert!(visit.dom.contains(text), "{text}: {}", visit.dom);
    }
}

#[tokio::test]
async fn failed_checks_come_first_with_their_remedies() {
    let fake = Fake::default();
    let click = r#"
        const find = () => [...document.querySelectorAll("button")].find(({ textContent }) => textContent === "Check again");
        const timer = setInterval(() => { const button = find(); if (button) { clearInterval(timer); button.click(); } }, 100);
    "#;
    let Some(visit) = act(&fake, "/status/checks", click).await else {
        return;
    };
    assert_shows(
        &visit,
        &[
            "1 failed, 1 warning, 1 passed",
            r#"<th scope="row">database:db:5432/installer"#,
            "refuses the password",
            "correct DB_USER",
            r#"<span class="badge bad">Failed</span>"#,
            r#"<span class="badge good">Passed</span>"#,
            r#"<a href="/status/checks" aria-current="page">"#,
            EVIL_AS_TEXT,
            NO_NOTICE,
        ],
    );
    let at = |text: &str| visit.dom.find(text).unwrap();
    assert!(at("refuses the password") < at("name one in OS_IMAGES"));
    assert!(at("name one in OS_IMAGES") < at("8192 MiB"));
    let asked = fake.asked.lock().unwrap();
    let runs = asked.iter().filter(|one| one.ends_with("/v2/doctor"));
    assert!(runs.count() >= 2, "{asked:?}");
}

#[tokio::test]
async fn checks_that_are_refused_are_an_error() {
    let fake = Fake {
        is_read_only: true,
        ..Fake::default()
    };
    let Some(visit) = visit(&fake, "/status/checks", 4).await else {
        return;
    };
    for text in ["Only administrators may do this", "Nothing to show."] {
        assert!(visit.dom.contains(text), "{text}: {}", visit.dom);
    }
    assert!(!visit.dom.contains(NO_NOTICE));
}

#[tokio::test]
async fn events_are_chosen_by_severity_and_page() {
    let fake = Fake::default();
    let Some(visit) = visit(&fake, "/status/events?severities=warning&page=2", 4).await else {
        return;
    };
    assert_shows(
        &visit,
        &["Something happened to", "Page 2 of 3", "Newer", "Older"],
    );
    assert!(fake.was_asked("severities=warning"));
    assert!(fake.was_asked("offset=25"));
}

#[tokio::test]
async fn a_choice_of_events_is_in_the_address() {
    let fake = Fake::default();
    let choose = r#"
        const timer = setInterval(() => {
            const box = document.querySelector("input[type=checkbox]");
            if (box) { clearInterval(timer); box.click(); }
        }, 100);
    "#;
    let Some(visit) = act(&fake, "/status/events", choose).await else {
        return;
    };
    assert_shows(&visit, &["Something happened to"]);
    assert!(fake.was_asked("severities=warning%2Cerror%2Ccritical"));
}

#[tokio::test]
async fn every_page_says_when_it_is_empty() {
    let fake = Fake {
        is_empty: true,
        ..Fake::default()
    };
    for (path, text) in [
        ("/status/", "No clusters yet."),
        ("/status/infra-envs", "No infra-envs yet."),
        ("/status/events", "No events yet."),
        ("/status/versions", "No versions."),
        ("/status/nowhere", "There is no such page."),
    ] {
        let Some(visit) = visit(&fake, path, 2).await else {
            return;
        };
        assert_shows(&visit, &[text]);
    }
}

#[tokio::test]
async fn content_stays_while_the_api_is_unavailable() {
    let fake = Fake {
        fails: 2..usize::MAX,
        ..Fake::default()
    };
    let Some(visit) = visit(&fake, "/status/", 8).await else {
        return;
    };
    for text in [
        "north",
        "The database is away. The data shown may be out of date.",
    ] {
        assert!(visit.dom.contains(text), "{}", visit.dom);
    }
}

#[tokio::test]
async fn an_unavailable_api_is_shown_and_retried() {
    let away = Fake {
        fails: 1..usize::MAX,
        ..Fake::default()
    };
    let Some(broken) = visit(&away, "/status/", 3).await else {
        return;
    };
    for text in ["The database is away.", "Trying again…", "Nothing to show."] {
        assert!(broken.dom.contains(text), "{}", broken.dom);
    }
    assert!(!broken.dom.contains(NO_NOTICE));
    let back = Fake {
        fails: 1..3,
        ..Fake::default()
    };
    let mended = visit(&back, "/status/", 10).await.unwrap();
    assert!(mended.dom.contains("north"), "{}", mended.dom);
    assert!(mended.dom.contains(NO_NOTICE), "{}", mended.dom);
}
