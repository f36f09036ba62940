//! One exchange with a BMC: a request, and its bounded answer.

use std::error::Error as StdError;
use std::time::Duration;

use reqwest::header::{ETAG, IF_MATCH, LOCATION, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use secrecy::SecretString;
use serde_json::Value;
use url::Url;

use super::error::BmcError;
use super::link::RedfishPath;

/// Longest answer. Units: bytes.
pub(super) const ANSWER_LIMIT: usize = 1 << 20;
/// Redirects of one read.
const REDIRECT_LIMIT: usize = 3;
/// Header of a session's token.
pub(super) const SESSION_TOKEN: &str = "x-auth-token";

/// A request. Its body may hold a password.
#[derive(Clone)]
pub(super) struct RedfishRequest {
    pub(super) method: Method,
    pub(super) path: RedfishPath,
    pub(super) body: Option<Value>,
    pub(super) if_match: Option<String>,
    /// Whether a refusal is an answer, and not repeated.
    pub(super) is_optional: bool,
}

impl RedfishRequest {
    pub(super) fn new(method: Method, path: &RedfishPath, body: Option<Value>) -> Self {
        Self {
            method,
            path: path.clone(),
            body,
            if_match: None,
            is_optional: false,
        }
    }

    /// Method and path, for messages.
    pub(super) fn shown(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// An answer.
#[derive(Debug)]
pub(super) struct RedfishReply {
    pub(super) status: StatusCode,
    pub(super) etag: Option<String>,
    /// The header `Location`, before it is known to stay at the origin.
    pub(super) location: Option<String>,
    pub(super) retry_after: Option<Duration>,
    pub(super) token: Option<SecretString>,
    /// The body; null unless it is JSON.
    pub(super) body: Value,
}

/// The failure of an exchange.
#[derive(Debug)]
pub(super) enum ExchangeFailure {
    /// The request did not reach the BMC.
    NeverSent(BmcError),
    /// The BMC may have acted.
    Interrupted(BmcError),
    /// Another attempt would fail as well.
    Final(BmcError),
}

impl ExchangeFailure {
    pub(super) fn error(self) -> BmcError {
        match self {
            Self::NeverSent(error) | Self::Interrupted(error) | Self::Final(error) => error,
        }
    }
}

/// The connections to one BMC.
#[derive(Debug, Clone)]
pub(super) struct RedfishHttp {
    pub(super) client: reqwest::Client,
    pub(super) origin: Url,
    /// Timeout of one answer.
    pub(super) timeout: Duration,
}

impl RedfishHttp {
    /// Sends a request, with the credentials that `authorize` adds. Reads follow redirects within the origin.
    pub(super) async fn exchange(
        &self,
        request: &RedfishRequest,
        authorize: impl Fn(RequestBuilder) -> RequestBuilder,
    ) -> Result<RedfishReply, ExchangeFailure> {
        let mut request = request.clone();
        for _ in 0..=REDIRECT_LIMIT {
            let response = self.send(&request, &authorize).await?;
            let status = response.status().as_u16();
            tracing::debug!(bmc = %self.origin, request = request.shown(), status, "a BMC answered");
            if !response.status().is_redirection() {
                return read(&request, response).await;
            }
            request.path = self.redirected(&request, &response)?;
        }
        Err(ExchangeFailure::Final(BmcError::Unreadable {
            request: request.shown(),
            reason: format!("more than {REDIRECT_LIMIT} redirects"),
        }))
    }

    async fn send(
        &self,
        request: &RedfishRequest,
        authorize: impl Fn(RequestBuilder) -> RequestBuilder,
    ) -> Result<Response, ExchangeFailure> {
        let url = request.path.at(&self.origin);
        let builder = self.client.request(request.method.clone(), url);
        let mut builder = builder
            .timeout(self.timeout)
            .header("accept", "application/json")
            .header("odata-version", "4.0");
        if let Some(body) = &request.body {
            builder = builder.json(body);
        }
        if let Some(etag) = &request.if_match {
            builder = builder.header(IF_MATCH, etag);
        }
        let sent = authorize(builder).send().await;
        sent.map_err(|e| failure(&request.shown(), &e))
    }

    /// The path of a redirect within the origin, of a read.
    fn redirected(
        &self,
        request: &RedfishRequest,
        response: &Response,
    ) -> Result<RedfishPath, ExchangeFailure> {
        let target = header(response, LOCATION.as_str());
        let target = target.and_then(|target| response.url().join(&target).ok());
        let Some(target) = target else {
            return Err(ExchangeFailure::Final(BmcError::Unreadable {
                request: request.shown(),
                reason: "a redirect without a target".to_owned(),
            }));
        };
        let path = RedfishPath::parse(target.as_str(), &self.origin).ok();
        let is_read = request.method == Method::GET;
        path.filter(|_| is_read).ok_or_else(|| {
            ExchangeFailure::Final(BmcError::Redirected {
                request: request.shown(),
                to: target.origin().ascii_serialization(),
            })
        })
    }
}

/// Reads an answer to its end.
async fn read(
    request: &RedfishRequest,
    mut response: Response,
) -> Result<RedfishReply, ExchangeFailure> {
    let too_large = || {
        ExchangeFailure::Final(BmcError::TooLarge {
            request: request.shown(),
            limit: format!("{ANSWER_LIMIT} bytes"),
        })
    };
    let mut bytes = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|e| failure(&request.shown(), &e))?
    {
        if bytes.len() + chunk.len() > ANSWER_LIMIT {
            return Err(too_large());
        }
        bytes.extend_from_slice(&chunk);
    }
    let status = response.status();
    // serde_json ends at 128 levels, before the stack does.
    let parsed = serde_json::from_slice(&bytes);
    let is_read = request.method == Method::GET && status == StatusCode::OK;
    let body = match parsed {
        Ok(body) => body,
        // Actions are answered with pages and empty texts, too.
        Err(_) if !is_read => Value::Null,
        Err(error) => {
            return Err(ExchangeFailure::Final(BmcError::Unreadable {
                request: request.shown(),
                reason: error.to_string(),
            }));
        }
    };
    let seconds = header(&response, RETRY_AFTER.as_str()).and_then(|text| text.trim().parse().ok());
    Ok(RedfishReply {
        status,
        etag: header(&response, ETAG.as_str()),
        location: header(&response, LOCATION.as_str()),
        retry_after: seconds.map(Duration::from_secs),
        token: header(&response, SESSION_TOKEN).map(SecretString::from),
        body,
    })
}

fn header(response: &Response, name: &str) -> Option<String> {
    let value = response.headers().get(name)?.to_str().ok()?;
    (!value.is_empty()).then(|| value.to_owned())
}

/// The failure of a connection, by its cause.
fn failure(request: &str, error: &reqwest::Error) -> ExchangeFailure {
    if let Some(cause) = certificate_error(error) {
        return ExchangeFailure::Final(BmcError::Untrusted {
            reason: cause.to_string(),
        });
    }
    let request = request.to_owned();
    if error.is_builder() {
        return ExchangeFailure::Final(BmcError::Internal {
            doing: "building a request",
            reason: cause(error),
        });
    }
    if error.is_connect() {
        let reason = cause(error);
        return ExchangeFailure::NeverSent(BmcError::Unreachable { request, reason });
    }
    let reason = if error.is_timeout() {
        "no answer in time".to_owned()
    } else {
        cause(error)
    };
    ExchangeFailure::Interrupted(BmcError::Interrupted { request, reason })
}

/// The causes behind an error of the client, whose own text has the URL.
fn cause(error: &reqwest::Error) -> String {
    match StdError::source(error) {
        Some(cause) => model::error::chain(cause),
        None => "the connection failed".to_owned(),
    }
}

/// The refusal of the certificate, if that is the cause.
fn certificate_error(error: &reqwest::Error) -> Option<&rustls::Error> {
    model::error::causes(error).find_map(|cause| {
        let tls = cause.downcast_ref::<rustls::Error>()?;
        matches!(tls, rustls::Error::InvalidCertificate(_)).then_some(tls)
    })
}
