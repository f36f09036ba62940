//! Web pages of strangers in a real browser on the operator's machine: they change nothing and read nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use axum::Router;
use axum::response::Html;
use axum::routing::get;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use system_tests::{Installation, client};
use testkit::chromium;
use url::Url;

const API: &str = "/api/assisted-install/v2";
/// Operations of the registry that change something, with a repository of its own.
const OF_REGISTRY: [(&str, &str); 7] = [
    ("POST", "/v2/_atoll/gc"),
    ("POST", "/v2/_atoll/scrub"),
    ("POST", "/v2/_atoll/reindex"),
    ("POST", "/v2/lab/evil/blobs/uploads/"),
    (
        "POST",
        "/v2/lab/evil/blobs/uploads/?digest=sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
    ),
    ("PUT", "/v2/lab/evil/manifests/latest"),
    ("DELETE", "/v2/lab/evil/manifests/latest"),
];
/// Operations of the web UI's server itself.
const OF_PAGE: [(&str, &str); 4] = [
    ("POST", "/login"),
    ("POST", "/logout"),
    ("POST", "/token"),
    ("POST", "/services/registry/v2/_atoll/gc"),
];
/// Lists that show every change.
const LISTS: [&str; 7] = [
    "/clusters",
    "/infra-envs",
    "/os-images",
    "/release-images",
    "/openshift-versions",
    "/jobs",
    "/audit",
];
/// Name that a stranger's name server would lead to this machine.
const REBOUND: &str = "rebound.example";

/// A site under attack by strangers.
struct AttackedSite {
    installation: Installation,
    http: reqwest::Client,
    api: String,
    page: String,
    registry: String,
    images: String,
}

impl AttackedSite {
    async fn start() -> Result<Self> {
        let installation = Installation::start().await?;
        let services = installation.state()?.services;
        let http = client(Some(&services.registry_ca))?;
        Ok(Self {
            http,
            api: services.api_url,
            page: services.ui_url.context("there is no page")?,
            registry: format!("https://{}", services.registry),
            images: services.image_service_url,
            installation,
        })
    }

    async fn get(&self, path: &str) -> Result<String> {
        let response = self.http.get(format!("{}{path}", self.api)).send().await?;
        Ok(response.error_for_status()?.text().await?)
    }

    async fn create(&self, path: &str, body: &Value) -> Result<Value> {
        let request = self.http.post(format!("{}{API}{path}", self.api));
        let response = request.json(body).send().await?;
        let status = response.status();
        let text = response.text().await?;
        ensure!(status == StatusCode::CREATED, "{path}: {status} {text}");
        Ok(serde_json::from_str(&text)?)
    }

    /// Everything that a change would show in.
    async fn state(&self) -> Result<BTreeMap<String, String>> {
        let mut state = BTreeMap::new();
        for path in LISTS {
            state.insert(path.to_owned(), self.get(&format!("{API}{path}")).await?);
        }
        let registry = self.installation.state()?.services.registry();
        let catalog = self.http.get(format!("{}/v2/_catalog", self.registry));
        let password = std::fs::read_to_string(&registry.password_file)?;
        let catalog = catalog.basic_auth(&registry.user, Some(password.trim_end()));
        let catalog = catalog.send().await?.error_for_status()?.text().await?;
        state.insert("repositories".to_owned(), catalog);
        Ok(state)
    }

    /// Requests that were refused as those of foreign pages.
    async fn refused(&self) -> Result<f64> {
        let metrics = self.get("/metrics").await?;
        let line = metrics.lines().find_map(|line| {
            line.strip_prefix("atoll_http_refused_total{reason=\"foreign page\"} ")
        });
        Ok(line.map(str::parse).transpose()?.unwrap_or_default())
    }

    /// Every operation of every server that changes something: method, URL, and a body that does.
    async fn operations(&self, ids: &[(&str, String)]) -> Result<Vec<(String, String, Value)>> {
        let description: Value = serde_json::from_str(&self.get(&format!("{API}/openapi")).await?)?;
        let base = description["servers"][0]["url"]
            .as_str()
            .context("no base")?;
        let mut operations = Vec::new();
        for (path, methods) in description["paths"].as_object().context("no paths")? {
            let mut filled = path.clone();
            for (name, id) in ids {
                filled = filled.replace(&format!("{{{name}}}"), id);
            }
            for method in methods.as_object().into_iter().flat_map(|it| it.keys()) {
                if matches!(method.as_str(), "get" | "head") {
                    continue;
                }
                for server in [&self.api, &self.page] {
                    let url = format!("{server}{base}{filled}");
                    operations.push((method.to_ascii_uppercase(), url, body(path)));
                }
            }
        }
        ensure!(operations.len() > 100, "{} operations", operations.len());
        let own = |server: &str, list: &[(&str, &str)]| {
            let list = list
                .iter()
                .map(|(method, path)| ((*method).to_owned(), format!("{server}{path}"), json!({})));
            list.collect::<Vec<_>>()
        };
        operations.extend(own(&self.registry, &OF_REGISTRY));
        operations.extend(own(&self.page, &OF_PAGE));
        operations.extend(own(&self.api, &[("POST", "/log-in-codes")]));
        operations.extend(own(
            &self.images,
            &[("POST", "/images/x"), ("DELETE", "/images/x")],
        ));
        Ok(operations)
    }
}

/// A body that changes something, where one is needed.
fn body(path: &str) -> Value {
    match path {
        "/v2/os-images" => json!({
            "openshift_version": "4.99", "cpu_architecture": "x86_64", "version": "evil",
            "url": "http://evil.example/evil.iso", "sha256": "0".repeat(64),
        }),
        "/v2/release-images" => json!({
            "openshift_version": "4.99", "version": "4.99.0", "cpu_architecture": "x86_64",
            "url": "evil.example/release:4.99.0", "default": true,
        }),
        "/v2/infra-envs" => {
            json!({ "name": "evil", "pull_secret": "{\"auths\":{\"a\":{\"auth\":\"YTpi\"}}}" })
        }
        "/v2/clusters" => json!({
            "name": "evil", "openshift_version": "4.99", "pull_secret": "{\"auths\":{\"a\":{\"auth\":\"YTpi\"}}}",
        }),
        "/v2/jobs" => json!({ "kind": "rehearsal", "rehearsal": { "profile": "compact" } }),
        _ => json!({ "name": "evil", "user_managed_networking": true }),
    }
}

/// The stranger's page: each operation in every way that a page has to send a request. It counts the requests that were
/// answered, which says nothing about effects: it cannot read the answers.
fn page(operations: &[(String, String, Value)]) -> String {
    let mut list = String::new();
    for (method, url, body) in operations {
        // Writing to a text does not fail.
        let _ = writeln!(
            list,
            "[{},{},{}],",
            json!(method),
            json!(url),
            json!(body.to_string())
        );
    }
    format!(
        r#"<!doctype html><title>stranger</title><iframe name="sink"></iframe><pre id="done"></pre><script>
const operations = [{list}];
const simple = ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"];
const counts = {{ sent: 0, answered: 0, refused: 0, read: 0 }};
const attempt = async (url, init) => {{
  counts.sent++;
  try {{
    const response = await fetch(url, {{ credentials: "include", ...init }});
    counts.answered++;
    if (response.type !== "opaque") counts.read++;
  }} catch {{
    counts.refused++;
  }}
}};
const form = (url, body) => {{
  const form = Object.assign(document.createElement("form"), {{
    method: "post", action: url, target: "sink", enctype: "text/plain",
  }});
  // The text of the body around the equals sign of a form.
  const [name, value] = [body.slice(0, -1) + ',"x":"', '"' + "}}"];
  form.append(Object.assign(document.createElement("input"), {{ name, value }}));
  document.body.append(form);
  form.submit();
}};
(async () => {{
  for (const [method, url, body] of operations) {{
    await attempt(url, {{ method, body, headers: {{ "content-type": "application/json" }} }});
    await attempt(url, {{ method }});
    if (method !== "POST") continue;
    for (const type of simple) await attempt(url, {{ method, mode: "no-cors", body: new Blob([body], {{ type }}) }});
    await attempt(url, {{ method, mode: "no-cors" }});
    navigator.sendBeacon(url, new Blob([body], {{ type: "text/plain" }}));
  }}
  for (const [method, url, body] of operations) if (method === "POST" && /images|clusters|infra-envs$/.test(url)) form(url, body);
  setTimeout(() => {{ document.getElementById("done").textContent = JSON.stringify(counts); }}, 3000);
}})();
</script>"#
    )
}

/// Serves the stranger's page; its origin, another site than that of the services.
async fn serve(page: String) -> Result<String> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let router = Router::new().route("/", get(async move || Html(page)));
    tokio::spawn(async { axum::serve(listener, router).await });
    Ok(format!("http://localhost:{port}/"))
}

#[tokio::test]
async fn a_strangers_page_changes_nothing() -> Result<()> {
    let Some(browser) = chromium::find() else {
        return Ok(());
    };
    let site = AttackedSite::start().await?;
    site.installation
        .change_settings("METRICS_ON_PUBLIC_PORT=true\nPUBLIC_CONTAINER_REGISTRIES=quay.io\n")
        .await?;
    let secret = "{\"auths\":{\"a\":{\"auth\":\"YTpi\"}}}";
    let os_image = json!({
        "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.1", "url": "http://127.0.0.1:1/live.iso",
    });
    site.create("/os-images", &os_image).await?;
    let infra_env = site
        .create(
            "/infra-envs",
            &json!({ "name": "lab", "pull_secret": secret }),
        )
        .await?;
    let id = |record: &Value| record["id"].as_str().unwrap_or_default().to_owned();
    let ids = [
        ("infra_env_id", id(&infra_env)),
        ("cluster_id", id(&infra_env)),
        ("host_id", id(&infra_env)),
        ("job_id", id(&infra_env)),
        ("version", "4.18".to_owned()),
    ];
    let operations = site.operations(&ids).await?;
    let before = site.state().await?;
    let stranger = serve(page(&operations)).await?;
    let flags = ["--ignore-certificate-errors"];
    let visit = chromium::visit_with(&browser, &stranger, 60, &flags).await?;
    let (_, counts) = visit
        .dom
        .split_once("<pre id=\"done\">")
        .context("no result")?;
    let (counts, _) = counts.split_once('<').context("no end")?;
    let counts: Value = serde_json::from_str(counts).with_context(|| visit.dom.clone())?;
    // Every simple request reached a server, and none was read.
    ensure!(counts["answered"].as_u64() > Some(300), "{counts}");
    ensure!(counts["read"] == 0, "{counts}");
    ensure!(site.refused().await? > 100.0, "{counts}");
    let after = site.state().await?;
    for (list, text) in &before {
        ensure!(
            after.get(list) == Some(text),
            "{list} changed: {:?}",
            after.get(list)
        );
    }
    // The same body of a program does change something.
    site.create("/os-images", &body("/v2/os-images")).await?;
    site.installation.stop().await
}

#[tokio::test]
async fn a_rebound_name_reads_and_changes_nothing() -> Result<()> {
    let Some(browser) = chromium::find() else {
        return Ok(());
    };
    let site = AttackedSite::start().await?;
    let map = format!("--host-resolver-rules=MAP {REBOUND} 127.0.0.1");
    let past_the_proxy = format!("--proxy-bypass-list={REBOUND}");
    let flags = [map.as_str(), past_the_proxy.as_str()];
    let port_of = |url: &str| {
        Url::parse(url)
            .ok()
            .and_then(|url| url.port())
            .unwrap_or_default()
    };
    for (server, path) in [
        (&site.api, "/api/assisted-install/v2/openshift-versions"),
        (&site.page, "/"),
        (&site.page, "/api/assisted-install/v2/clusters"),
        (&site.images, "/health"),
    ] {
        let url = format!("http://{REBOUND}:{}{path}", port_of(server));
        let visit = chromium::visit_with(&browser, &url, 2, &flags).await?;
        ensure!(visit.dom.contains("ALLOWED_HOSTS"), "{url}: {}", visit.dom);
        ensure!(visit.outside.is_empty(), "{:?}", visit.outside);
    }
    // Requests of a page of that name: for the browser, they are of the same origin.
    for (method, url, body) in site.operations(&[]).await? {
        if url.starts_with(&site.registry) {
            continue;
        }
        let authority = format!("{REBOUND}:{}", port_of(&url));
        let method: Method = method.parse()?;
        let request = site.http.request(method.clone(), &url).json(&body);
        let request = request
            .header("host", &authority)
            .header("origin", format!("http://{authority}"))
            .header("sec-fetch-site", "same-origin");
        let status = request.send().await?.status();
        ensure!(
            status == StatusCode::MISDIRECTED_REQUEST,
            "{method} {url}: {status}"
        );
    }
    site.installation.stop().await
}
