//! The client of the installer API, with the retries of the agent and of the installer.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use model::host::HostStage;
use model::steps::{NextStepCmdRequest, StepReply, Steps};
use net::redirect;
use net::resolve::Resolver;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Body, Method, RequestBuilder, Response};
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use serde_json::json;
use tokio_util::io::ReaderStream;
use url::Url;
use uuid::Uuid;

use crate::Error;
use crate::args::AgentArgs;

/// The token of the pull secret.
const SECRET_KEY: &str = "x-secret-key";
const BASE_PATH: &str = "api/assisted-install/v2";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const READ_TIMEOUT: Duration = Duration::from_mins(1);
/// Longest response that is read into memory: an ignition. Units: bytes.
const MAX_RESPONSE: usize = 32 << 20;
/// Longest text of a refusal in an error. Units: characters.
const MAX_REASON: usize = 500;

/// Retries of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RetryPolicy {
    /// Three retries. Source: assisted-installer-agent.
    Agent,
    /// About an hour. Source: openshift/assisted-installer.
    Installer,
}

impl RetryPolicy {
    fn attempts(self, error: &Error) -> u32 {
        match (self, error.status()) {
            (Self::Agent, None | Some(503 | 504)) => 4,
            (Self::Installer, None | Some(408 | 429 | 500..=599)) => 360,
            (Self::Installer, Some(404 | 423 | 425)) => 10,
            _ => 1,
        }
    }

    /// The pause after this attempt, from 1.
    fn pause(attempt: u32) -> Duration {
        Duration::from_secs(u64::from((2 * attempt).min(10)))
    }
}

/// A client for one host. Clones share connections.
#[derive(Debug, Clone)]
pub(crate) struct ServiceClient {
    http: reqwest::Client,
    /// Header of each request, not of the client: it must not follow a redirect to another server.
    token: HeaderValue,
    base: Url,
    infra_env_id: Uuid,
    agent_version: String,
    is_insecure: bool,
    cacert: Option<String>,
}

/// The members of the answer to a registration that the agent uses.
#[derive(Debug, Deserialize)]
struct HostRegistration {
    next_step_runner_command: NextStepRunnerCommand,
}

#[derive(Debug, Deserialize)]
struct NextStepRunnerCommand {
    args: Vec<String>,
}

impl ServiceClient {
    /// A client by the program's arguments; the token of the pull secret authenticates it.
    ///
    /// Errors: the certificates cannot be read; the token is no header value.
    pub(crate) fn new(arguments: &AgentArgs) -> Result<Self, Error> {
        let pem = arguments
            .cacert
            .as_deref()
            .map(read_certificates)
            .transpose()?;
        let tls = net::trust::client_config(pem.as_deref(), arguments.insecure)
            .map_err(|error| Error::new("reading the trusted certificates", error))?;
        let mut token = HeaderValue::from_str(arguments.pull_secret_token.expose_secret())
            .map_err(|error| Error::new("reading PULL_SECRET_TOKEN", error))?;
        token.set_sensitive(true);
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .dns_resolver(Resolver::system())
            .redirect(redirect::policy())
            .tls_backend_preconfigured(tls)
            .build()
            .map_err(|error| Error::new("building the HTTP client", error))?;
        Ok(Self {
            http,
            token,
            base: arguments.url.clone(),
            infra_env_id: arguments.infra_env_id,
            agent_version: arguments.agent_version.clone(),
            is_insecure: arguments.insecure,
            cacert: arguments
                .cacert
                .as_ref()
                .map(|path| path.to_string_lossy().into_owned()),
        })
    }

    /// The address of the API, for people.
    pub(crate) fn base(&self) -> &Url {
        &self.base
    }

    /// Whether the API's certificate is not verified.
    pub(crate) fn is_insecure(&self) -> bool {
        self.is_insecure
    }

    /// The file of trusted certificates.
    pub(crate) fn cacert(&self) -> Option<&str> {
        self.cacert.as_deref()
    }

    fn url(&self, path: &str) -> Result<Url, Error> {
        let base = self.base.as_str().trim_end_matches('/');
        let url = format!("{base}/{BASE_PATH}/{path}");
        url.parse()
            .map_err(|error| Error::new(format!("reading the URL {url}"), error))
    }

    fn host_path(&self, host_id: Uuid, end: &str) -> String {
        format!("infra-envs/{}/hosts/{host_id}{end}", self.infra_env_id)
    }

    /// Registers the host, and checks that the answer names it. The result is the peer's image of the agent.
    pub(crate) async fn register(&self, host_id: Uuid) -> Result<String, Error> {
        let path = format!("infra-envs/{}/hosts", self.infra_env_id);
        let body = json!({ "host_id": host_id, "discovery_agent_version": self.agent_version });
        let action = "registering this host";
        let response = self
            .send(RetryPolicy::Agent, action, Method::POST, &path, |request| {
                Ok(request
                    .header("discovery_agent_version", &self.agent_version)
                    .json(&body))
            })
            .await?;
        let wrong = |error: serde_json::Error| Error::new("reading the registration", error);
        let registration: HostRegistration = serde_json::from_slice(&response).map_err(wrong)?;
        let [runner] = registration.next_step_runner_command.args.as_slice() else {
            return Err(Error::message(
                "the registration has no argument for the step runner",
            ));
        };
        let runner: NextStepCmdRequest = serde_json::from_str(runner).map_err(wrong)?;
        if runner.host_id.0 != host_id {
            return Err(Error::message(format!(
                "the service registered host {} instead of {host_id}",
                runner.host_id
            )));
        }
        Ok(runner.agent_version)
    }

    /// The next steps of the host.
    pub(crate) async fn steps(&self, host_id: Uuid) -> Result<Steps, Error> {
        let seconds = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.as_secs());
        let path = self.host_path(host_id, "/instructions");
        let response = self
            .send(
                RetryPolicy::Agent,
                "asking for steps",
                Method::GET,
                &path,
                |request| {
                    let request = request.query(&[("timestamp", seconds)]);
                    Ok(request.header("discovery_agent_version", &self.agent_version))
                },
            )
            .await?;
        serde_json::from_slice(&response).map_err(|error| Error::new("reading the steps", error))
    }

    /// Sends the result of a step.
    pub(crate) async fn reply(&self, host_id: Uuid, reply: &StepReply) -> Result<(), Error> {
        let path = self.host_path(host_id, "/instructions");
        self.send(
            RetryPolicy::Agent,
            "sending a reply",
            Method::POST,
            &path,
            |request| {
                Ok(request
                    .header("discovery_agent_version", &self.agent_version)
                    .json(reply))
            },
        )
        .await
        .map(drop)
    }

    /// Reports the stage of an installation, of this host or of another.
    pub(crate) async fn progress(
        &self,
        host_id: Uuid,
        stage: HostStage,
        info: &str,
    ) -> Result<(), Error> {
        let path = self.host_path(host_id, "/progress");
        let body = json!({ "current_stage": stage, "progress_info": info });
        let action = "reporting progress";
        self.send(
            RetryPolicy::Installer,
            action,
            Method::PUT,
            &path,
            |request| Ok(request.json(&body)),
        )
        .await
        .map(drop)
    }

    /// The ignition that the host is installed with.
    pub(crate) async fn host_ignition(&self, host_id: Uuid) -> Result<Vec<u8>, Error> {
        let path = format!(
            "infra-env/{}/hosts/{host_id}/downloads/ignition",
            self.infra_env_id
        );
        let action = "downloading the host's ignition";
        self.send(RetryPolicy::Installer, action, Method::GET, &path, Ok)
            .await
    }

    /// Hosts of a cluster with a role.
    pub(crate) async fn hosts(
        &self,
        cluster_id: Uuid,
        role: &str,
    ) -> Result<Vec<model::host::Host>, Error> {
        let path = format!("clusters/{cluster_id}/hosts");
        let response = self
            .send(
                RetryPolicy::Installer,
                "listing hosts",
                Method::GET,
                &path,
                |request| Ok(request.query(&[("role", role)])),
            )
            .await?;
        serde_json::from_slice(&response).map_err(|error| Error::new("reading the hosts", error))
    }

    /// Reports the state of the collection of logs.
    pub(crate) async fn logs_progress(&self, host_id: Uuid, state: &str) -> Result<(), Error> {
        let path = self.host_path(host_id, "/logs-progress");
        let body = json!({ "logs_state": state });
        let action = "reporting the collection of logs";
        self.send(RetryPolicy::Agent, action, Method::PUT, &path, |request| {
            Ok(request.json(&body))
        })
        .await
        .map(drop)
    }

    /// Uploads an archive of logs from a file, as multipart form data.
    pub(crate) async fn upload_logs(
        &self,
        cluster_id: Uuid,
        host_id: Uuid,
        archive: &Path,
    ) -> Result<(), Error> {
        const BOUNDARY: &str = "atoll-agent-archive-of-logs";
        let head = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"upfile\"; filename=\"logs.tar.gz\"\r\n\
             Content-Type: application/gzip\r\n\r\n"
        );
        let end = format!("\r\n--{BOUNDARY}--\r\n");
        let path = format!("clusters/{cluster_id}/logs");
        let ids = [
            ("logs_type", "host".to_owned()),
            ("infra_env_id", self.infra_env_id.to_string()),
            ("host_id", host_id.to_string()),
        ];
        let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
        let action = "uploading logs";
        self.send(
            RetryPolicy::Installer,
            action,
            Method::POST,
            &path,
            |request| {
                let file = fs::File::open(archive)
                    .map_err(|error| Error::io("reading the archive of logs", error))?;
                let file = ReaderStream::new(tokio::fs::File::from_std(file));
                let part = |text: &str| stream::iter([Ok(Bytes::from(text.to_owned()))]);
                let body = Body::wrap_stream(part(&head).chain(file).chain(part(&end)));
                Ok(request
                    .query(&ids)
                    .header(CONTENT_TYPE, &content_type)
                    .body(body))
            },
        )
        .await
        .map(drop)
    }

    async fn send(
        &self,
        policy: RetryPolicy,
        action: &str,
        method: Method,
        path: &str,
        complete: impl Fn(RequestBuilder) -> Result<RequestBuilder, Error>,
    ) -> Result<Vec<u8>, Error> {
        let url = self.url(path)?;
        let mut attempt = 1;
        loop {
            let request = self.http.request(method.clone(), url.clone());
            let request = complete(request.header(SECRET_KEY, self.token.clone()))?;
            let error = match self.once(action, request).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            if attempt >= policy.attempts(&error) {
                return Err(error);
            }
            tracing::warn!(attempt, error = error.chain(), "request failed, retrying");
            tokio::time::sleep(RetryPolicy::pause(attempt)).await;
            attempt += 1;
        }
    }

    async fn once(&self, action: &str, request: RequestBuilder) -> Result<Vec<u8>, Error> {
        let broken = |error: reqwest::Error| Error::new(action, error.without_url());
        let request = request.build().map_err(broken)?;
        let mut response = redirect::send(&self.http, request)
            .await
            .map_err(broken)?
            .response;
        let status = response.status();
        let body = body(&mut response, action).await?;
        if status.is_success() {
            return Ok(body);
        }
        Err(Error::response(action, status.as_u16(), &reason(&body)))
    }
}

async fn body(response: &mut Response, action: &str) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| Error::new(action, error.without_url()))?
    {
        if bytes.len() + chunk.len() > MAX_RESPONSE {
            return Err(Error::message(format!(
                "{action}: the answer has more than {MAX_RESPONSE} bytes"
            )));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// The reason in a refusal: of either error body of the API, else its text.
fn reason(body: &[u8]) -> String {
    let json: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let member = ["reason", "message"]
        .iter()
        .find_map(|name| json[*name].as_str());
    let text = member.map_or_else(|| String::from_utf8_lossy(body).into_owned(), str::to_owned);
    text.chars().take(MAX_REASON).collect()
}

fn read_certificates(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|error| Error::io(format!("reading {}", path.display()), error))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use axum::response::IntoResponse as _;
    use clap::Parser as _;

    use super::*;

    #[test]
    fn failures_that_pass_are_retried() {
        let error = |status: u16| Error::response("x", status, "");
        assert_eq!(RetryPolicy::Agent.attempts(&error(503)), 4);
        assert_eq!(RetryPolicy::Agent.attempts(&error(404)), 1);
        assert_eq!(RetryPolicy::Agent.attempts(&Error::message("no answer")), 4);
        assert_eq!(RetryPolicy::Installer.attempts(&error(404)), 10);
        assert_eq!(RetryPolicy::Installer.attempts(&error(409)), 1);
    }

    /// A server, which redirects to `location` or has no steps, and the secret key of each request.
    async fn server(location: Option<String>) -> (String, Arc<Mutex<Vec<Option<String>>>>) {
        let seen: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
        let record = Arc::clone(&seen);
        let router = axum::Router::new().fallback(move |headers: axum::http::HeaderMap| {
            let key = headers
                .get(SECRET_KEY)
                .map(|key| key.to_str().unwrap().to_owned());
            record.lock().unwrap().push(key);
            let location = location.clone();
            async move {
                match location {
                    Some(url) => axum::response::Redirect::temporary(&url).into_response(),
                    None => axum::Json(json!({ "instructions": null })).into_response(),
                }
            }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (url, seen)
    }

    #[tokio::test]
    async fn the_token_stays_at_the_service() {
        let (other, at_other) = server(None).await;
        let (own, at_own) = server(Some(other)).await;
        let id = Uuid::nil().to_string();
        let line = [
            "agent",
            "--url",
            &own,
            "--infra-env-id",
            &id,
            "--pull-secret-token",
            "secret",
        ];
        let client = ServiceClient::new(&AgentArgs::parse_from(line)).unwrap();
        client.steps(Uuid::nil()).await.unwrap();
        assert_eq!(*at_own.lock().unwrap(), [Some("secret".to_owned())]);
        assert_eq!(*at_other.lock().unwrap(), [None]);
    }

    #[test]
    fn refusals_have_their_reason() {
        assert_eq!(reason(br#"{"code":"404","reason":"no host"}"#), "no host");
        assert_eq!(reason(br#"{"code":401,"message":"no token"}"#), "no token");
        assert_eq!(reason(b"<html>"), "<html>");
    }
}
