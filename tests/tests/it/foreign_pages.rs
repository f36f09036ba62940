//! Web pages of strangers in a real browser on the operator's machine: they change nothing and read nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use axum::Router;
use axum::response::Html;
use axum::routing::get;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use system_tests::{Installation, Scratch, SiteProxy, client};
use testkit::chromium;
use testkit::iso::LiveImageOptions;
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
/// Services of gRPC, whose requests are POST.
const OF_CATALOG_SERVER: [(&str, &str); 3] = [
    ("POST", "/api.Registry/ListPackages"),
    ("POST", "/api.Registry/ListBundles"),
    ("POST", "/grpc.health.v1.Health/Check"),
];
/// Of the proxy itself.
const OF_PROXY: [(&str, &str); 3] = [("POST", "/"), ("PUT", "/evil"), ("DELETE", "/ready")];
/// A catalog of one package.
const CATALOG: &str = r#"{"schema":"olm.package","name":"lab","defaultChannel":"stable"}
{"schema":"olm.channel","package":"lab","name":"stable","entries":[{"name":"lab.v1.0.0"}]}
{"schema":"olm.bundle","package":"lab","name":"lab.v1.0.0","image":"quay.io/lab/bundle:1","properties":[{"type":"olm.package","value":{"packageName":"lab","version":"1.0.0"}}]}
"#;
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
/// Settings of the site.
const SETTINGS: &str = "METRICS_ON_PUBLIC_PORT=true\nPUBLIC_CONTAINER_REGISTRIES=quay.io\nALLOWED_HOSTS=*.site.example\n\
    AGENT_DOCKER_IMAGE=quay.io/lab/agent:1\nINSTALLER_IMAGE=quay.io/lab/installer:1\n\
    CONTROLLER_IMAGE=quay.io/lab/controller:1\n";
/// Query of the request that the log is searched for: it carried the remembered password.
const REMEMBERED: &str = "n=77";
/// Name that a stranger's name server would lead to this machine.
const REBOUND: &str = "rebound.example";

/// A site under attack by strangers.
struct AttackedSite {
    installation: Installation,
    proxy: SiteProxy,
    _content: Scratch,
    http: reqwest::Client,
    api: String,
    page: String,
    registry: String,
    images: String,
    catalogs: String,
}

impl AttackedSite {
    async fn start() -> Result<Self> {
        let content = Scratch::new()?;
        let catalog = content.path().join("catalog");
        std::fs::create_dir(&catalog)?;
        std::fs::write(catalog.join("lab.json"), CATALOG)?;
        let catalog = catalog.display().to_string();
        let installation = Installation::start_with(&["--catalog", &catalog]).await?;
        let live = content.path().join("live.iso");
        testkit::iso::write(&live, &LiveImageOptions::default())?;
        let os_images = json!([{
            "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.1",
            "url": format!("file://{}", live.display()),
        }]);
        let settings = format!("{SETTINGS}OS_IMAGES={os_images}\n");
        installation.change_settings(&settings).await?;
        let services = installation.state()?.services;
        let proxy = SiteProxy::start(&services, &installation.folder("proxy")?).await?;
        Ok(Self {
            http: client(Some(&services.registry_ca))?,
            proxy,
            _content: content,
            api: services.api_url,
            page: services.ui_url.context("there is no page")?,
            registry: format!("https://{}", services.registry),
            images: services.image_service_url,
            catalogs: format!("http://{}", services.catalog_server),
            installation,
        })
    }

    /// Addresses of the API, of those that forward to it.
    fn apis(&self) -> [String; 6] {
        [
            self.api.clone(),
            self.page.clone(),
            self.proxy.api(),
            self.proxy.page(),
            self.proxy.named("api"),
            self.proxy.named("web"),
        ]
    }

    /// The registry with its user and password in the address, as a browser stores them.
    fn registry_with_password(&self) -> Result<String> {
        let registry = self.installation.state()?.services.registry();
        let password = std::fs::read_to_string(&registry.password_file)?;
        let mut url = Url::parse(&self.registry)?;
        let is_set = url.set_username(&registry.user).is_ok()
            && url.set_password(Some(password.trim_end())).is_ok();
        ensure!(is_set, "{} has no place for a password", self.registry);
        Ok(url.join("/v2/")?.into())
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

    /// Fails unless the browser sent the remembered password, and the registry no request that changes something to its
    /// own code: those are refused before its log.
    fn registry_was_only_read(&self) -> Result<()> {
        let log = std::fs::read_to_string(self.installation.data().join("logs/registry.log"))?;
        let user = format!(" {} [", self.installation.state()?.services.registry_user);
        let remembered = log.lines().filter(|line| line.contains(REMEMBERED));
        let mut remembered = remembered.filter(|line| line.contains(&user));
        ensure!(remembered.next().is_some(), "no password was sent: {log}");
        let changes = ["\"POST ", "\"PUT ", "\"DELETE ", "\"PATCH "];
        let mut changed = log
            .lines()
            .filter(|line| changes.iter().any(|method| line.contains(method)));
        ensure!(changed.next().is_none(), "the registry was changed: {log}");
        Ok(())
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
                for server in self.apis() {
                    let url = format!("{server}{base}{filled}");
                    operations.push((method.to_ascii_uppercase(), url, body(path)));
                }
            }
        }
        ensure!(operations.len() > 280, "{} operations", operations.len());
        let own = |server: &str, list: &[(&str, &str)]| {
            let list = list
                .iter()
                .map(|(method, path)| ((*method).to_owned(), format!("{server}{path}"), json!({})));
            list.collect::<Vec<_>>()
        };
        operations.extend(own(&self.registry, &OF_REGISTRY));
        operations.extend(own(&self.page, &OF_PAGE));
        for page in [self.proxy.page(), self.proxy.named("web")] {
            operations.extend(own(&page, &OF_PAGE));
        }
        for api in [self.api.clone(), self.proxy.api()] {
            operations.extend(own(&api, &[("POST", "/log-in-codes")]));
        }
        for images in [self.images.clone(), self.proxy.images()] {
            operations.extend(own(
                &images,
                &[("POST", "/images/x"), ("DELETE", "/images/x")],
            ));
        }
        operations.extend(own(&self.catalogs, &OF_CATALOG_SERVER));
        let of_proxy = [
            self.proxy.status(),
            self.proxy.files(),
            self.proxy.named("mirror"),
        ];
        for server in of_proxy {
            operations.extend(own(&server, &OF_PROXY));
        }
        Ok(operations)
    }
}

/// A body that changes something, where one is needed.
fn body(path: &str) -> Value {
    match path {
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
/// answered, which says nothing about effects: it cannot read the answers. Before, it opens `registry`, whose password the
/// browser remembers from then on; forms to a window of their own carry it.
fn page(operations: &[(String, String, Value)], registry: &str) -> String {
    let mut list = String::new();
    let registry = json!(registry);
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
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
const registry = {registry};
const form = (url, body, target) => {{
  const form = Object.assign(document.createElement("form"), {{
    method: "post", action: url, target, enctype: "text/plain",
  }});
  // The text of the body around the equals sign of a form.
  const [name, value] = [body.slice(0, -1) + ',"x":"', '"' + "}}"];
  form.append(Object.assign(document.createElement("input"), {{ name, value }}));
  document.body.append(form);
  form.submit();
}};
(async () => {{
  const window = open(registry);
  await pause(2000);
  open(new URL("/v2/_catalog?{REMEMBERED}", new URL(registry).origin));
  for (const [method, url, body] of operations) {{
    await attempt(url, {{ method, body, headers: {{ "content-type": "application/json" }} }});
    await attempt(url, {{ method }});
    if (method !== "POST") continue;
    for (const type of simple) await attempt(url, {{ method, mode: "no-cors", body: new Blob([body], {{ type }}) }});
    await attempt(url, {{ method, mode: "no-cors" }});
    navigator.sendBeacon(url, new Blob([body], {{ type: "text/plain" }}));
  }}
  for (const [method, url, body] of operations) {{
    if (method === "POST" && /clusters|infra-envs$/.test(url)) form(url, body, "sink");
    if (method === "POST" && url.includes("/v2/_atoll/")) form(url, body, "_blank");
  }}
  await pause(3000);
  document.getElementById("done").textContent = JSON.stringify(counts);
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
    let secret = "{\"auths\":{\"a\":{\"auth\":\"YTpi\"}}}";
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
    ];
    let operations = site.operations(&ids).await?;
    let before = site.state().await?;
    let stranger = serve(page(&operations, &site.registry_with_password()?)).await?;
    let names = format!("*.{}", SiteProxy::DOMAIN);
    let map = format!("--host-resolver-rules=MAP {names} 127.0.0.1");
    let past_the_proxy = format!("--proxy-bypass-list={names}");
    let flags = [
        "--ignore-certificate-errors",
        "--disable-popup-blocking",
        &map,
        &past_the_proxy,
    ];
    let visit = chromium::visit_with(&browser, &stranger, 60, &flags).await?;
    let (_, counts) = visit
        .dom
        .split_once("<pre id=\"done\">")
        .context("no result")?;
    let (counts, _) = counts.split_once('<').context("no end")?;
    let counts: Value = serde_json::from_str(counts).with_context(|| visit.dom.clone())?;
    // Every simple request reached a server, and none was read.
    ensure!(counts["answered"].as_u64() > Some(850), "{counts}");
    ensure!(counts["read"] == 0, "{counts}");
    ensure!(site.refused().await? > 100.0, "{counts}");
    site.registry_was_only_read()?;
    let after = site.state().await?;
    for (list, text) in &before {
        ensure!(
            after.get(list) == Some(text),
            "{list} changed: {:?}",
            after.get(list)
        );
    }
    // The same body of a program does change something.
    site.create("/infra-envs", &body("/v2/infra-envs")).await?;
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
        (&site.catalogs, "/ui/"),
        (&site.proxy.api(), "/api/assisted-install/v2/clusters"),
        (&site.proxy.page(), "/"),
        (&site.proxy.images(), "/health"),
        (&site.proxy.status(), "/metrics"),
        (&site.proxy.files(), "/"),
    ] {
        let url = format!("http://{REBOUND}:{}{path}", port_of(server));
        let visit = chromium::visit_with(&browser, &url, 2, &flags).await?;
        ensure!(visit.dom.contains("ALLOWED_HOSTS"), "{url}: {}", visit.dom);
        ensure!(visit.outside.is_empty(), "{:?}", visit.outside);
    }
    // Requests of a page of that name: for the browser, they are of the same origin.
    for (method, url, body) in site.operations(&[]).await? {
        // Of TLS, the name is in the certificate.
        if url.starts_with("https:") {
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
