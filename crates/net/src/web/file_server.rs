//! One web server: its listings, and its files by ranges. Requests, and the login, stay at the origin of the URL.

use bytes::Bytes;
use model::Error;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, HeaderMap, HeaderValue, LOCATION,
};
use reqwest::{Client, Response, StatusCode, Url};

use super::{CONNECT_TIMEOUT, READ_TIMEOUT, SERVER, broken, is_retried, shown};
use crate::redirect;
use crate::resolve::Resolver;
use crate::trust::{self, Unchecked};

/// Start of messages about certificates. Source: `rustls::Error`.
const UNTRUSTED: &str = "invalid peer certificate";

/// A client of one web server, by the proxies of the environment. Clones share connections.
#[derive(Debug, Clone)]
pub struct FileServer {
    http: Client,
    login: Option<HeaderValue>,
}

/// A page, complete.
#[derive(Debug, Clone)]
pub struct WebPage {
    /// Its URL, after redirects.
    pub url: Url,
    /// Its HTML, most often.
    pub bytes: Bytes,
}

impl FileServer {
    /// A client that trusts the system's certificates and those in `ca_pem`, and does not verify those of `unchecked`
    /// hosts. `login` is the value of `Authorization`; it is not sent over plain HTTP.
    ///
    /// Errors: Invalid – `ca_pem` holds no certificate; Internal – the client cannot be built.
    pub fn new(
        ca_pem: Option<&[u8]>,
        unchecked: impl Into<Unchecked>,
        login: Option<HeaderValue>,
    ) -> Result<Self, Error> {
        let http = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .dns_resolver(Resolver::system())
            .redirect(redirect::policy())
            // A connection for each transfer: one that waits for its reader does not hold up the others.
            .http1_only()
            .tls_backend_preconfigured(trust::client_config(ca_pem, unchecked)?)
            .build()
            .map_err(|e| Error::internal("building the web client", e))?;
        let login = login.map(|mut login| {
            login.set_sensitive(true);
            login
        });
        Ok(Self { http, login })
    }

    /// Downloads a page. Units: bytes, for `limit`.
    ///
    /// Errors: TooLarge; NotFound; Unauthenticated – a login is missing or wrong; Forbidden; Unavailable – unreachable
    /// after all attempts; Invalid – a redirect to another origin, or any other refusal.
    pub async fn page(&self, url: &Url, limit: u64) -> Result<WebPage, Error> {
        let mut failures = 0;
        loop {
            let page = self.page_once(url, limit).await;
            if !is_retried(&page, &mut failures).await {
                return page;
            }
        }
    }

    async fn page_once(&self, url: &Url, limit: u64) -> Result<WebPage, Error> {
        let accepted = HeaderValue::from_static("text/html");
        let mut response = self
            .once(url, [(ACCEPT, accepted)].into_iter().collect())
            .await?;
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|e| broken(url, e))? {
            if (bytes.len() + chunk.len()) as u64 > limit {
                let what = "the page of a web server";
                return Err(Error::TooLarge { what, limit });
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(WebPage {
            url: response.url().clone(),
            bytes: bytes.into(),
        })
    }

    /// A response with 200, 206 or 416.
    ///
    /// Errors: as [`Self::page`], except TooLarge.
    pub(super) async fn get(&self, url: &Url, headers: &HeaderMap) -> Result<Response, Error> {
        let mut failures = 0;
        loop {
            let response = self.once(url, headers.clone()).await;
            if !is_retried(&response, &mut failures).await {
                return response;
            }
        }
    }

    async fn once(&self, url: &Url, mut headers: HeaderMap) -> Result<Response, Error> {
        // Ranges are those of the file itself.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(login) = self.login(url) {
            headers.insert(AUTHORIZATION, login.clone());
        }
        let request = self.http.get(url.clone()).headers(headers);
        let response = request.send().await.map_err(|e| unreachable(url, e))?;
        self.check(url, &response)?;
        Ok(response)
    }

    fn login(&self, url: &Url) -> Option<&HeaderValue> {
        self.login.as_ref().filter(|_| url.scheme() == "https")
    }

    fn check(&self, url: &Url, response: &Response) -> Result<(), Error> {
        let status = response.status();
        let answered = || format!("{} answered {status}", shown(url));
        let wrong = |reason: String| Err(Error::invalid(shown(url), reason));
        match status {
            StatusCode::OK | StatusCode::PARTIAL_CONTENT => {
                match response.headers().get(CONTENT_ENCODING) {
                    Some(coding) if coding != "identity" => {
                        wrong(format!("the server encodes it unasked, as {coding:?}"))
                    }
                    _ => Ok(()),
                }
            }
            StatusCode::RANGE_NOT_SATISFIABLE => Ok(()),
            StatusCode::NOT_FOUND | StatusCode::GONE => Err(Error::not_found("file", shown(url))),
            StatusCode::UNAUTHORIZED => Err(Error::Unauthenticated {
                reason: format!("{}: {}", shown(url), self.why_unauthenticated(url)),
            }),
            StatusCode::FORBIDDEN => Err(Error::Forbidden { reason: answered() }),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => {
                Err(Error::unavailable(SERVER, answered()))
            }
            status if status.is_server_error() => Err(Error::unavailable(SERVER, answered())),
            status if status.is_redirection() => wrong(elsewhere(response)),
            _ => wrong(format!("the server answered {status}")),
        }
    }

    fn why_unauthenticated(&self, url: &Url) -> &'static str {
        match (&self.login, self.login(url)) {
            (None, _) => "it requires a login: the authentication file has none for this host",
            (Some(_), None) => "it requires a login, which is not sent over plain HTTP",
            (Some(_), Some(_)) => "the server refuses the login of the authentication file",
        }
    }
}

/// The error of a request without a response. Retries do not mend a certificate.
fn unreachable(url: &Url, error: reqwest::Error) -> Error {
    let error = broken(url, error);
    let text = error.chain();
    match text.find(UNTRUSTED) {
        Some(at) => {
            let cause = &text[at..];
            let reason = format!(
                "its certificate is not trusted: {cause}; name the certificate of its authority (CA) if that is the site's own"
            );
            Error::invalid(shown(url), reason)
        }
        None => error,
    }
}

/// The reason why a redirect was not followed.
fn elsewhere(response: &Response) -> String {
    let location = response.headers().get(LOCATION);
    let location = location.and_then(|it| response.url().join(it.to_str().ok()?).ok());
    match location {
        Some(url) => format!(
            "it redirects to another server, {}: name that URL if it is the right one",
            shown(&url)
        ),
        None => format!("the server answered {}", response.status()),
    }
}
