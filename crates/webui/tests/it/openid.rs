//! A small OpenID provider that signs real tokens, an API that accepts them, and a browser's cookies.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, body::Bytes};
use data_encoding::BASE64URL_NOPAD;
use http::{HeaderMap, Method, StatusCode, header};
use ring::digest;
use serde_json::{Value, json};
use testkit::ports::free_port;
use testkit::tokens::TokenKey;
use url::form_urlencoded;

use crate::server::{self, Server};

pub(crate) const CLIENT: &str = "atoll";
pub(crate) const SECRET: &str = "a client's secret: ä&+";
const DISCOVERY: &str = "/.well-known/openid-configuration";

/// Behaviour of the provider, and its records.
#[derive(Default)]
pub(crate) struct ProviderState {
    /// Validity of access tokens. Units: seconds.
    pub(crate) expires_in: i64,
    /// How far its clock is ahead. Units: seconds.
    pub(crate) ahead_s: i64,
    /// Claims that replace those of the ID token.
    pub(crate) id_claims: Value,
    /// Length of a claim of access tokens. Units: bytes.
    pub(crate) padding: usize,
    /// Whether access tokens are opaque.
    pub(crate) is_opaque: bool,
    /// Whether the API knows no new access token.
    pub(crate) is_unknown: bool,
    /// Members that replace those of its description; text in place of it.
    pub(crate) description: Value,
    /// Issuer that its answers name.
    pub(crate) response_issuer: Option<String>,
    /// Requests to its token endpoint.
    pub(crate) exchanges: usize,
    /// Error that it reports instead of a code.
    pub(crate) denial: Option<&'static str>,
    pub(crate) refuses_refreshes: bool,
    /// Whether its token endpoint is out of order.
    pub(crate) is_away: bool,
    pub(crate) refreshes: usize,
    /// Access tokens that the API accepts.
    pub(crate) accepted: HashSet<String>,
    pub(crate) all_tokens: Vec<String>,
    /// Unused codes of log-in links, with their tokens.
    pub(crate) log_in_codes: BTreeMap<String, String>,
    codes: HashMap<String, Grant>,
    refresh_tokens: HashSet<String>,
    count: usize,
}

struct Grant {
    challenge: String,
    nonce: String,
    redirect_uri: String,
}

#[derive(Clone)]
pub(crate) struct Provider {
    key: Arc<TokenKey>,
    pub(crate) state: Arc<Mutex<ProviderState>>,
}

/// The provider, the API behind the web UI, and their records.
pub(crate) struct OpenIdSite {
    pub(crate) provider: Provider,
    pub(crate) issuer: Server,
    pub(crate) api: Server,
}

impl OpenIdSite {
    pub(crate) async fn start() -> Self {
        let state = ProviderState {
            expires_in: 600,
            id_claims: json!({}),
            ..ProviderState::default()
        };
        let provider = Provider {
            key: Arc::new(TokenKey::new().unwrap()),
            state: Arc::new(Mutex::new(state)),
        };
        let routes = Router::new()
            .route(DISCOVERY, get(describe))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .with_state(provider.clone());
        let api = Router::new()
            .route("/ready", get(|| async {}))
            .route("/log-in-codes", post(redeem))
            .fallback(api)
            .with_state(provider.clone());
        Self {
            provider,
            issuer: server::api(routes).await,
            api: server::api(api).await,
        }
    }

    /// A web UI with this provider, under `base_url` if browsers use another one than its own.
    pub(crate) async fn webui(
        &self,
        key: &str,
        change: impl FnOnce(&mut webui::Settings),
    ) -> Server {
        let issuer = self.issuer.url("");
        let port = free_port().unwrap();
        server::webui_with(self.api.address, |settings| {
            settings.auth_type = webui::AuthType::Oidc;
            settings.webui_port = port;
            settings.webui_base_url = Some(format!("http://127.0.0.1:{port}"));
            settings.oidc_issuer = issuer;
            CLIENT.clone_into(&mut settings.oidc_client_id);
            settings.oidc_client_secret = SECRET.into();
            settings.session_key = key.into();
            change(settings);
        })
        .await
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut ProviderState)) {
        change(&mut self.provider.state.lock().unwrap());
    }
}

fn pairs(text: &[u8]) -> HashMap<String, String> {
    form_urlencoded::parse(text).into_owned().collect()
}

fn issuer_of(headers: &HeaderMap) -> String {
    format!("http://{}", headers[header::HOST].to_str().unwrap())
}

async fn describe(State(provider): State<Provider>, headers: HeaderMap) -> Response {
    let issuer = issuer_of(&headers);
    let changed = provider.state.lock().unwrap().description.clone();
    if let Some(text) = changed.as_str() {
        return text.to_owned().into_response();
    }
    if let Some(url) = changed["redirect"].as_str() {
        return (StatusCode::FOUND, [(header::LOCATION, url.to_owned())]).into_response();
    }
    let mut description = json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "end_session_endpoint": format!("{issuer}/end"),
    });
    let changed = changed.as_object().cloned().unwrap_or_default();
    description.as_object_mut().unwrap().extend(changed);
    Json(description).into_response()
}

async fn authorize(State(provider): State<Provider>, RawQuery(query): RawQuery) -> Response {
    let query = pairs(query.unwrap().as_bytes());
    assert_eq!(query["response_type"], "code");
    assert_eq!(query["client_id"], CLIENT);
    assert_eq!(query["code_challenge_method"], "S256");
    assert!(query["scope"].contains("openid"));
    let mut state = provider.state.lock().unwrap();
    state.count += 1;
    let code = format!("code-{}", state.count);
    let grant = Grant {
        challenge: query["code_challenge"].clone(),
        nonce: query["nonce"].clone(),
        redirect_uri: query["redirect_uri"].clone(),
    };
    state.codes.insert(code.clone(), grant);
    let answer = match state.denial {
        Some(error) => format!("error={error}"),
        None => format!("code={code}"),
    };
    let issuer = state.response_issuer.as_ref();
    let issuer = issuer.map_or_else(String::new, |issuer| format!("&iss={issuer}"));
    let back = format!(
        "{}?{answer}&state={}{issuer}",
        query["redirect_uri"], query["state"]
    );
    (StatusCode::FOUND, [(header::LOCATION, back)]).into_response()
}

async fn token(State(provider): State<Provider>, headers: HeaderMap, form: Bytes) -> Response {
    let refused =
        |error: &str| (StatusCode::BAD_REQUEST, Json(json!({ "error": error }))).into_response();
    let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{CLIENT}:{}", encode(SECRET));
    let basic = format!("Basic {}", data_encoding::BASE64.encode(pair.as_bytes()));
    if headers
        .get(header::AUTHORIZATION)
        .is_none_or(|found| *found != *basic)
    {
        return refused("invalid_client");
    }
    let form = pairs(&form);
    let mut state = provider.state.lock().unwrap();
    state.exchanges += 1;
    if state.is_away {
        return StatusCode::BAD_GATEWAY.into_response();
    }
    let nonce = if form["grant_type"] == "refresh_token" {
        if state.refuses_refreshes || !state.refresh_tokens.remove(&form["refresh_token"]) {
            return refused("invalid_grant");
        }
        state.refreshes += 1;
        None
    } else {
        let Some(grant) = state.codes.remove(&form["code"]) else {
            return refused("invalid_grant");
        };
        let hash = digest::digest(&digest::SHA256, form["code_verifier"].as_bytes());
        assert_eq!(grant.challenge, BASE64URL_NOPAD.encode(hash.as_ref()));
        assert_eq!(grant.redirect_uri, form["redirect_uri"]);
        Some(grant.nonce)
    };
    state.count += 1;
    let now = service::clock::now().timestamp() + state.ahead_s;
    let issuer = issuer_of(&headers);
    let access = json!({
        "iss": issuer, "aud": "installer", "exp": now + 600, "username": "alice", "jti": state.count,
        "padding": "x".repeat(state.padding),
    });
    let access = if state.is_opaque {
        format!("opaque-{}", state.count)
    } else {
        provider.key.sign_with_id("one", &access).unwrap()
    };
    let refresh = format!("refresh-{}", state.count);
    if !state.is_unknown {
        state.accepted.insert(access.clone());
    }
    state.refresh_tokens.insert(refresh.clone());
    state.all_tokens.extend([access.clone(), refresh.clone()]);
    let mut answer = json!({
        "token_type": "Bearer", "access_token": access, "refresh_token": refresh, "expires_in": state.expires_in,
    });
    if let Some(nonce) = nonce {
        let mut claims = json!({
            "iss": issuer, "aud": CLIENT, "exp": now + 300, "iat": now, "nonce": nonce, "sub": "17",
            "preferred_username": "alice <b>",
        });
        let changed = state.id_claims.as_object().unwrap().clone();
        claims.as_object_mut().unwrap().extend(changed);
        answer["id_token"] = provider.key.sign_with_id("one", &claims).unwrap().into();
    }
    Json(answer).into_response()
}

/// Responds with the credentials of the request, except the tokens themselves.
async fn api(State(provider): State<Provider>, method: Method, headers: HeaderMap) -> Response {
    let text = |name| {
        headers
            .get(name)
            .map(|value| value.to_str().unwrap().to_owned())
    };
    let token = text(header::AUTHORIZATION).unwrap_or_default();
    let state = provider.state.lock().unwrap();
    let number = state
        .all_tokens
        .iter()
        .position(|one| format!("Bearer {one}") == token);
    let is_accepted = token
        .strip_prefix("Bearer ")
        .is_some_and(|token| state.accepted.contains(token));
    if !is_accepted {
        return (
            StatusCode::UNAUTHORIZED,
            Json(json!({ "code": 401, "message": "the token is not valid: it is <unknown>" })),
        )
            .into_response();
    }
    // The scripts of the page; every list is empty.
    if text(header::ACCEPT).is_some_and(|accepted| accepted == "application/json") {
        return Json(json!([])).into_response();
    }
    let seen =
        json!({ "method": method.as_str(), "token": number, "cookie": text(header::COOKIE) });
    Json(seen).into_response()
}

/// Exchanges the code of a log-in link, once.
async fn redeem(State(provider): State<Provider>, Json(code): Json<Value>) -> Response {
    let code = code["code"].as_str().unwrap_or_default();
    let token = provider.state.lock().unwrap().log_in_codes.remove(code);
    if let Some(token) = token {
        return Json(json!({ "token": token })).into_response();
    }
    let refusal = json!({ "code": 401, "message": "the code of the link was used" });
    (StatusCode::UNAUTHORIZED, Json(refusal)).into_response()
}

/// A browser: it keeps cookies, and follows no redirect by itself.
#[derive(Clone)]
pub(crate) struct Browser {
    client: reqwest::Client,
    pub(crate) jar: BTreeMap<String, String>,
}

/// A response that was read to its end.
pub(crate) struct Seen {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Seen {
    pub(crate) fn location(&self) -> &str {
        assert_eq!(self.status / 100, 3, "{}", self.text);
        self.headers[header::LOCATION].to_str().unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub(crate) fn set_cookies(&self) -> Vec<&str> {
        let all = self.headers.get_all(header::SET_COOKIE).iter();
        all.map(|value| value.to_str().unwrap()).collect()
    }
}

impl Browser {
    pub(crate) fn new() -> Self {
        let tls = net::trust::client_config(None, false).unwrap();
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .tls_backend_preconfigured(tls)
            .no_proxy()
            .build();
        Self {
            client: client.unwrap(),
            jar: BTreeMap::new(),
        }
    }

    pub(crate) async fn get(&mut self, url: &str) -> Seen {
        let request = self.client.get(url).header(header::ACCEPT, "text/html");
        self.send(request).await
    }

    /// Loads a file of a page.
    pub(crate) async fn load(&mut self, url: &str) -> Seen {
        let request = self.client.get(url).header(header::ACCEPT, "*/*");
        self.send(request).await
    }

    pub(crate) async fn post(&mut self, url: &str, origin: &str, form: &[(&str, &str)]) -> Seen {
        let mut body = form_urlencoded::Serializer::new(String::new());
        let body = body.extend_pairs(form).finish();
        let request = self
            .client
            .post(url)
            .header(header::ORIGIN, origin)
            .body(body);
        let kind = "application/x-www-form-urlencoded";
        self.send(request.header(header::CONTENT_TYPE, kind)).await
    }

    pub(crate) async fn send(&mut self, request: reqwest::RequestBuilder) -> Seen {
        let cookies: Vec<_> = self
            .jar
            .iter()
            .map(|(name, text)| format!("{name}={text}"))
            .collect();
        let request = if cookies.is_empty() {
            request
        } else {
            request.header(header::COOKIE, cookies.join("; "))
        };
        let response = request.send().await.unwrap();
        let seen = Seen {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: response.text().await.unwrap(),
        };
        for cookie in seen.set_cookies() {
            let (pair, attributes) = cookie.split_once(';').unwrap();
            let (name, text) = pair.split_once('=').unwrap();
            if attributes.contains("Max-Age=0") {
                self.jar.remove(name);
            } else {
                self.jar.insert(name.to_owned(), text.to_owned());
            }
        }
        seen
    }

    /// Logs in at `path`; returns the response of the callback, and its URL.
    pub(crate) async fn log_in(&mut self, webui: &Server, path: &str) -> (Seen, String) {
        let gate = self.get(&webui.url(path)).await;
        let start = self.get(&webui.url(gate.location())).await;
        let provider = Self::new().get(start.location()).await;
        let callback = provider.location().to_owned();
        (self.get(&callback).await, callback)
    }
}

/// The address of a server, for requests without a browser's name resolution.
pub(crate) fn origin(address: SocketAddr) -> String {
    format!("http://{address}")
}
