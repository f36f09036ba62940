//! A server with authentication, and tokens for it.

use api_server::Settings;
use api_server::operations::Operation;
use api_server::operations::access::{CredentialPlace, Scheme};
use api_server::settings::AuthType;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use service::settings::CommaList;
use testkit::tokens::TokenKey;

use crate::harness::{AGENT, Answer, PULL_SECRET, Server, cluster_params, host_id, merged};

pub(crate) const KEY_ID: &str = "one";
pub(crate) const ISSUER: &str = "https://issuer.example";
pub(crate) const AUDIENCE: &str = "installer";
pub(crate) const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

/// A server with authentication, and the keys of its tokens.
pub(crate) struct SecuredServer {
    pub(crate) server: Server,
    pub(crate) key: TokenKey,
    pub(crate) stranger: TokenKey,
    kind: AuthType,
}

/// A cluster, its infra-env and its host.
#[derive(Debug, Clone)]
pub(crate) struct Owned {
    pub(crate) cluster: String,
    pub(crate) infra_env: String,
    pub(crate) host: String,
    /// Token of the agents.
    pub(crate) agent: String,
}

pub(crate) fn now() -> i64 {
    service::clock::now().timestamp()
}

/// Adds a credential at its place.
pub(crate) fn with(request: RequestBuilder, scheme: Scheme, token: &str) -> RequestBuilder {
    match scheme.place() {
        CredentialPlace::Header(name) => request.header(name, token),
        CredentialPlace::Query(name) => request.query(&[(name, token)]),
    }
}

pub(crate) fn pull_secret(user: &str) -> String {
    let auth = STANDARD.encode(format!("{user}:token"));
    let mut secret: Value = serde_json::from_str(PULL_SECRET).unwrap();
    secret["auths"]["cloud.openshift.com"] = json!({ "auth": auth });
    secret.to_string()
}

/// The agents' token of [`pull_secret`].
pub(crate) fn cloud_token(user: &str) -> String {
    let secret: Value = serde_json::from_str(&pull_secret(user)).unwrap();
    let token = &secret["auths"]["cloud.openshift.com"]["auth"];
    token.as_str().unwrap().to_owned()
}

/// Trusts the issuer with `key`, and the administrators `root` and `auditor`.
fn trust(settings: &mut Settings, key: &TokenKey) {
    settings.jwks_cert = key.jwks(KEY_ID).to_string();
    ISSUER.clone_into(&mut settings.oidc_issuer);
    AUDIENCE.clone_into(&mut settings.oidc_audience);
    settings.admin_users = CommaList(vec!["root".to_owned()]);
    settings.read_only_admin_users = CommaList(vec!["auditor".to_owned()]);
}

impl SecuredServer {
    /// AUTH_TYPE=local.
    pub(crate) async fn local(change: impl FnOnce(&mut Settings)) -> Self {
        Self::start(AuthType::Local, |settings, key| {
            settings.ec_public_key_pem.clone_from(&key.public_pem);
            settings.ec_private_key_pem = key.private_pem.clone().into();
            change(settings);
        })
        .await
    }

    /// AUTH_TYPE=oidc, with the administrators `root` and `auditor`.
    pub(crate) async fn oidc(change: impl FnOnce(&mut Settings)) -> Self {
        Self::start(AuthType::Oidc, |settings, key| {
            trust(settings, key);
            change(settings);
        })
        .await
    }

    /// The server of tests without authentication, restarted with AUTH_TYPE=oidc, and a key for the tokens of agents.
    pub(crate) async fn oidc_after(server: Server) -> Self {
        let key = TokenKey::new().unwrap();
        let server = server.restart_with(|settings| {
            settings.auth_type = AuthType::Oidc;
            trust(settings, &key);
            settings.ec_public_key_pem.clone_from(&key.public_pem);
            settings.ec_private_key_pem = key.private_pem.clone().into();
        });
        Self {
            server: server.await,
            key,
            stranger: TokenKey::new().unwrap(),
            kind: AuthType::Oidc,
        }
    }

    async fn start(kind: AuthType, change: impl FnOnce(&mut Settings, &TokenKey)) -> Self {
        let key = TokenKey::new().unwrap();
        let server = Server::with(|settings| {
            settings.auth_type = kind;
            change(settings, &key);
        })
        .await;
        Self {
            server,
            key,
            stranger: TokenKey::new().unwrap(),
            kind,
        }
    }

    /// A token of a user; with AUTH_TYPE=local, of the administrator under that name.
    pub(crate) fn user(&self, name: &str) -> String {
        self.user_with(name, json!({}))
    }

    pub(crate) fn user_with(&self, name: &str, more: Value) -> String {
        let token = if self.kind == AuthType::Local {
            let claims = json!({ "auth_scheme": "userAuth", "sub": name });
            self.key.sign(&merged(claims, more))
        } else {
            let claims = json!({
                "iss": ISSUER, "aud": AUDIENCE, "exp": now() + 600, "username": name,
                "email": format!("{name}@lab.example"),
            });
            self.key.sign_with_id(KEY_ID, &merged(claims, more))
        };
        format!("Bearer {}", token.unwrap())
    }

    pub(crate) async fn send(
        &self,
        user: &str,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Answer {
        let request = with(
            self.server.request(method, path),
            Scheme::User,
            &self.user(user),
        );
        Server::send(match body {
            Some(body) => request.json(body),
            None => request,
        })
        .await
    }

    pub(crate) async fn get(&self, user: &str, path: &str) -> Answer {
        self.send(user, Method::GET, path, None).await
    }

    /// A cluster of that user, with an infra-env and a host.
    pub(crate) async fn resources(&self, user: &str) -> Owned {
        let secret = pull_secret(user);
        let params = merged(
            cluster_params(),
            json!({ "name": user, "pull_secret": secret }),
        );
        let cluster = self
            .send(user, Method::POST, "/v2/clusters", Some(&params))
            .await;
        let cluster = cluster.expect(201)["id"].as_str().unwrap().to_owned();
        let params = json!({
            "name": user, "pull_secret": secret, "openshift_version": "4.18", "cluster_id": cluster,
        });
        let infra_env = self
            .send(user, Method::POST, "/v2/infra-envs", Some(&params))
            .await;
        let infra_env = infra_env.expect(201)["id"].as_str().unwrap().to_owned();
        let agent = match self.kind {
            AuthType::Local => self
                .key
                .sign(&json!({ "infra_env_id": infra_env }))
                .unwrap(),
            _ => cloud_token(user),
        };
        let host = host_id(1);
        let params = json!({ "host_id": host, "discovery_agent_version": AGENT });
        let path = format!("/v2/infra-envs/{infra_env}/hosts");
        let request = self.server.request(Method::POST, &path).json(&params);
        Server::send(with(request, Scheme::Agent, &agent))
            .await
            .expect(201);
        Owned {
            cluster,
            infra_env,
            host,
            agent,
        }
    }

    /// Calls an operation on those resources.
    pub(crate) async fn call(
        &self,
        operation: &Operation,
        own: &Owned,
        credential: Option<(Scheme, &str)>,
    ) -> (u16, String) {
        let path = operation.path.replace("{cluster_id}", &own.cluster);
        let path = path.replace("{infra_env_id}", &own.infra_env);
        let path = path.replace("{host_id}", &own.host);
        let path = path.replace("{operator_name}", "lvm").replace("{id}", "x");
        let path = path.replace("{validation_id}", "x");
        let method = Method::from_bytes(operation.method.as_bytes()).unwrap();
        let mut request = self.server.request(method, &path);
        request = match operation.id {
            "v2ListEvents" | "streamEvents" => request.query(&[("cluster_id", &own.cluster)]),
            "v2TriggerEvent" => request.json(&json!({
                "name": "e", "cluster_id": own.cluster, "severity": "info", "category": "user", "message": "m",
                "event_time": "2026-01-02T03:04:05Z",
            })),
            _ => request,
        };
        if let Some((scheme, token)) = credential {
            request = with(request, scheme, token);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let kind = response.headers().get("content-type");
        // A stream of events does not end.
        if kind.is_some_and(|kind| kind == "text/event-stream") {
            return (status, String::new());
        }
        (status, response.text().await.unwrap())
    }
}

/// The token in the URL of an image; empty once its infra-env is deleted.
pub(crate) async fn image_token(site: &SecuredServer, user: &str, infra_env: &str) -> String {
    let path = format!("/v2/infra-envs/{infra_env}/downloads/image-url");
    let url = site.get(user, &path).await.body["url"]
        .as_str()
        .map(str::to_owned);
    let url = url.unwrap_or_else(|| format!("/bytoken/{}/", site.user("unknown")));
    let (_, rest) = url.split_once("/bytoken/").expect(&url);
    rest.split('/').next().unwrap().to_owned()
}

/// The token in the unit of the agent.
pub(crate) fn agent_token(ignition: &Value) -> String {
    let units = ignition["systemd"]["units"].as_array().unwrap();
    let agent = units
        .iter()
        .find(|unit| unit["name"] == "agent.service")
        .unwrap();
    let text = agent["contents"].as_str().unwrap();
    let (_, rest) = text.split_once("PULL_SECRET_TOKEN=").expect(text);
    rest.lines().next().unwrap().replace("%%", "%")
}
