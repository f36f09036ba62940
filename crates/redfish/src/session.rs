//! Requests of one login: authentication, retries, refusals.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use secrecy::ExposeSecret as _;
use serde_json::Value;
use url::Url;

use super::access::BmcCredentials;
use super::authentication::{Authentication, falls_back_to_basic, login, sessions};
use super::document::RedfishDocument;
use super::endpoint::SERVICE_ROOT;
use super::error::BmcError;
use super::http::{ExchangeFailure, RedfishHttp, RedfishReply, RedfishRequest};
use super::link::RedfishPath;
use super::message::{RedfishMessage, messages, reason, without_secrets};
use super::quirks::LoginMethod;
use super::retry::{AttemptFailure, is_transient, pause};
use super::timing::RedfishTiming;

/// Timeout of the end of a session, which is not awaited longer.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// Members of one collection that are read.
pub(super) const MEMBER_LIMIT: usize = 64;
/// Pages of one collection that are read.
const PAGE_LIMIT: usize = 8;

/// A login to a BMC. Requests are sent one after the other: BMCs are small.
pub(super) struct RedfishSession {
    http: RedfishHttp,
    credentials: BmcCredentials,
    authentication: Authentication,
    /// The root of the service, for further logins.
    root: RedfishDocument,
    /// Whether a refused session is replaced: once, until a request succeeds.
    may_log_in_again: bool,
    /// Texts that messages must not show.
    hidden: Vec<String>,
    pub(super) timing: RedfishTiming,
}

impl RedfishSession {
    /// Reads the root of the service, without credentials where the BMC follows the standard.
    pub(super) async fn open(
        http: RedfishHttp,
        credentials: BmcCredentials,
        timing: RedfishTiming,
    ) -> Result<Self, BmcError> {
        let path = RedfishPath::own(SERVICE_ROOT);
        let origin = http.origin.clone();
        let root = |body, etag| RedfishDocument {
            path: path.clone(),
            etag,
            body,
            origin: origin.clone(),
        };
        let mut session = Self {
            http,
            credentials,
            authentication: Authentication::Anonymous,
            root: root(Value::Null, None),
            may_log_in_again: false,
            hidden: Vec::new(),
            timing,
        };
        let request = RedfishRequest::new(Method::GET, &path, None);
        let mut reply = match session.attempt(&request).await {
            Err(BmcError::NotFound { path, .. }) => {
                return Err(BmcError::NotFound {
                    path,
                    remedy: ": check that the address is a BMC's, with Redfish".to_owned(),
                });
            }
            reply => reply?,
        };
        if reply.status == StatusCode::UNAUTHORIZED {
            session.authentication = Authentication::Basic;
            reply = session.attempt(&request).await?;
        }
        if reply.status == StatusCode::UNAUTHORIZED {
            return Err(session.unauthenticated(&request, &reply));
        }
        session.root = root(reply.body, reply.etag);
        if session.root.link("/Systems")?.is_none() {
            return Err(BmcError::Unreadable {
                request: request.shown(),
                reason: "no list of systems; check that the address is a BMC's".to_owned(),
            });
        }
        Ok(session)
    }

    /// The root of the service.
    pub(super) fn root(&self) -> &RedfishDocument {
        &self.root
    }

    /// Logs in: by a session where the BMC has them.
    pub(super) async fn log_in(&mut self, method: LoginMethod) -> Result<(), BmcError> {
        let sessions = sessions(&self.root)?;
        let has_basic = matches!(self.authentication, Authentication::Basic);
        if let Some(sessions) = sessions.filter(|_| method == LoginMethod::Session && !has_basic) {
            match self.open_session(&sessions).await {
                Ok(Some(session)) => {
                    self.authentication = session;
                    // A session that was never accepted is not replaced.
                    self.may_log_in_again = false;
                    return Ok(());
                }
                Ok(None) => {}
                Err(error) if falls_back_to_basic(&error) => {
                    tracing::debug!(bmc = %self.http.origin, %error, "no session, falling back to basic authentication");
                }
                Err(error) => return Err(error),
            }
        }
        self.authentication = Authentication::Basic;
        Ok(())
    }

    async fn open_session(
        &mut self,
        sessions: &RedfishPath,
    ) -> Result<Option<Authentication>, BmcError> {
        self.authentication = Authentication::Anonymous;
        let request = login(sessions, &self.credentials);
        let reply = self.attempt(&request).await?;
        if reply.status == StatusCode::UNAUTHORIZED {
            return Err(self.unauthenticated(&request, &reply));
        }
        Ok(Authentication::of_reply(reply, &self.root))
    }

    /// Ends the session at the BMC, which has few of them.
    pub(super) async fn close(&mut self) {
        if let Some(end) = self.end() {
            end.await;
        }
    }

    /// The end of the session, if there is one. Failures are logged only: sessions also expire.
    fn end(&mut self) -> Option<impl Future<Output = ()> + Send + 'static> {
        let authentication = std::mem::replace(&mut self.authentication, Authentication::Anonymous);
        let Authentication::Session { path, .. } = &authentication else {
            return None;
        };
        let request = RedfishRequest::new(Method::DELETE, path.as_ref()?, None);
        let mut http = self.http.clone();
        http.timeout = http.timeout.min(CLOSE_TIMEOUT);
        let credentials = self.credentials.clone();
        Some(async move {
            let ended = http.exchange(&request, |it| authentication.apply(it, &credentials));
            if let Err(failure) = ended.await {
                let error = failure.error();
                tracing::debug!(bmc = %http.origin, %error, "a session was not ended");
            }
        })
    }

    /// Reads a resource.
    pub(super) async fn get(&mut self, path: &RedfishPath) -> Result<RedfishDocument, BmcError> {
        self.read(RedfishRequest::new(Method::GET, path, None))
            .await
    }

    /// Reads a resource that some BMCs name and do not show: none of those.
    pub(super) async fn find(
        &mut self,
        path: &RedfishPath,
    ) -> Result<Option<RedfishDocument>, BmcError> {
        let request = RedfishRequest {
            is_optional: true,
            ..RedfishRequest::new(Method::GET, path, None)
        };
        match self.read(request).await {
            Ok(document) => Ok(Some(document)),
            Err(
                BmcError::NotFound { .. } | BmcError::Refused { .. } | BmcError::Forbidden { .. },
            ) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn read(&mut self, request: RedfishRequest) -> Result<RedfishDocument, BmcError> {
        let reply = self.send(&request).await?;
        if !reply.body.is_object() {
            return Err(BmcError::Unreadable {
                request: request.shown(),
                reason: format!("no JSON object, with status {}", reply.status.as_u16()),
            });
        }
        Ok(RedfishDocument {
            path: request.path,
            etag: reply.etag,
            body: reply.body,
            origin: self.http.origin.clone(),
        })
    }

    /// The members of a collection, over its pages, up to [`MEMBER_LIMIT`].
    pub(super) async fn members(
        &mut self,
        collection: &RedfishPath,
    ) -> Result<Vec<RedfishPath>, BmcError> {
        let mut members = Vec::new();
        let mut next = Some(collection.clone());
        for _ in 0..PAGE_LIMIT {
            let Some(page) = next else { break };
            let page = self.get(&page).await?;
            members.extend(page.links("/Members", MEMBER_LIMIT - members.len())?);
            next = page.link("/Members@odata.nextLink")?;
        }
        Ok(members)
    }

    /// Sends a request and returns its successful answer.
    pub(super) async fn send(
        &mut self,
        request: &RedfishRequest,
    ) -> Result<RedfishReply, BmcError> {
        let mut reply = self.attempt(request).await?;
        let is_session = matches!(self.authentication, Authentication::Session { .. });
        if reply.status == StatusCode::UNAUTHORIZED && is_session && self.may_log_in_again {
            tracing::debug!(bmc = %self.http.origin, "the session has ended, logging in again");
            self.log_in(LoginMethod::Session).await?;
            reply = self.attempt(request).await?;
        }
        if reply.status == StatusCode::UNAUTHORIZED {
            return Err(self.unauthenticated(request, &reply));
        }
        self.may_log_in_again = true;
        Ok(reply)
    }

    /// Sends a request until it is answered, with retries; answers are successes and 401.
    async fn attempt(&self, request: &RedfishRequest) -> Result<RedfishReply, BmcError> {
        let mut failures = 0;
        loop {
            let authorize = |it| self.authentication.apply(it, &self.credentials);
            let (error, asked, is_transient) = match self.http.exchange(request, authorize).await {
                Ok(reply)
                    if reply.status.is_success() || reply.status == StatusCode::UNAUTHORIZED =>
                {
                    return Ok(reply);
                }
                Ok(reply) => {
                    let found = self.messages(&reply.body);
                    let ids: Vec<String> = found.iter().map(|it| it.id.clone()).collect();
                    let status = reply.status.as_u16();
                    let is_final = request.is_optional && !matches!(status, 429 | 503);
                    let failure = AttemptFailure::Refused(status, &ids);
                    let is_transient = !is_final && is_transient(&request.method, failure);
                    (
                        refused(request, &reply, found),
                        reply.retry_after,
                        is_transient,
                    )
                }
                Err(ExchangeFailure::Final(error)) => return Err(error),
                Err(ExchangeFailure::NeverSent(error)) => (
                    error,
                    None,
                    is_transient(&request.method, AttemptFailure::NeverSent),
                ),
                Err(ExchangeFailure::Interrupted(error)) => (
                    error,
                    None,
                    is_transient(&request.method, AttemptFailure::Interrupted),
                ),
            };
            failures += 1;
            let pause = pause(failures, asked, rand::random(), &self.timing);
            let Some(pause) = pause.filter(|_| is_transient) else {
                return Err(error);
            };
            tracing::debug!(bmc = %self.http.origin, %error, ?pause, "retrying a request");
            tokio::time::sleep(pause).await;
        }
    }

    fn unauthenticated(&self, request: &RedfishRequest, reply: &RedfishReply) -> BmcError {
        let found = self.messages(&reply.body);
        let reason = if found.is_empty() {
            String::new()
        } else {
            format!(": {}", reason(&found, 401))
        };
        BmcError::Unauthenticated {
            request: request.shown(),
            reason,
        }
    }

    /// The messages of an answer, without secrets: BMCs repeat parts of requests in them.
    pub(super) fn messages(&self, body: &Value) -> Vec<RedfishMessage> {
        let mut secrets = vec![self.credentials.password.expose_secret()];
        if let Authentication::Session { token, .. } = &self.authentication {
            secrets.push(token.expose_secret());
        }
        secrets.extend(self.hidden.iter().map(String::as_str));
        let mut found = messages(body);
        for message in &mut found {
            message.text = without_secrets(&message.text, &secrets);
        }
        found
    }

    /// Hides the query of a URL and the token in its path in the messages from now on.
    pub(super) fn hide_tokens(&mut self, url: &Url) {
        let query = url.query().map(str::to_owned);
        let values = url.query_pairs().map(|(_, value)| value.into_owned());
        let token = net::masks::token(url.path()).map(str::to_owned);
        let texts = query.into_iter().chain(values).chain(token);
        // Short ones are no secrets, and would hide words.
        for text in texts.filter(|text| text.len() >= 8) {
            if !self.hidden.contains(&text) {
                self.hidden.push(text);
            }
        }
    }
}

impl Drop for RedfishSession {
    /// Ends the session of an operation that was cancelled.
    fn drop(&mut self) {
        if let (Some(end), Ok(runtime)) = (self.end(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(end);
        }
    }
}

/// The error of a refusal.
fn refused(request: &RedfishRequest, reply: &RedfishReply, found: Vec<RedfishMessage>) -> BmcError {
    let status = reply.status.as_u16();
    let reason = reason(&found, status);
    let request_text = request.shown();
    match reply.status {
        StatusCode::NOT_FOUND => BmcError::NotFound {
            path: request.path.to_string(),
            remedy: String::new(),
        },
        StatusCode::FORBIDDEN => BmcError::Forbidden {
            request: request_text,
            reason: format!(": {reason}"),
        },
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => BmcError::Busy {
            request: request_text,
            status,
            reason,
        },
        _ => BmcError::Refused {
            request: request_text,
            status,
            reason,
            messages: found,
        },
    }
}
