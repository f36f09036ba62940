//! Versions of the hosted installer, authorized by an access token that an offline token is exchanged for.
//!
//! No token reaches a message, a log or the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use model::Error;
use net::resolve::Resolver;
use net::trust;
use oauth2::basic::BasicClient;
use oauth2::{
    AccessToken, ClientId, HttpRequest, HttpResponse, RefreshToken, RequestTokenError,
    TokenResponse as _, TokenUrl,
};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url, redirect};

use crate::web_address::web_address;

/// Paths of the versions below the base URL: the hosted service has the first, a neutral one may have the second alone.
const VERSIONS: [&str; 2] = [
    "api/assisted-install/v2/openshift-versions",
    "api/assisted-install/v2/platform-versions",
];
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Units: bytes. The list of versions has some ten thousand.
const RESPONSE_LIMIT_BYTES: usize = 8 << 20;
/// Units: bytes. Tokens have a few thousand.
const TOKEN_LIMIT_BYTES: u64 = 64 << 10;
/// Reported part of a response that is no JSON. Units: characters.
const REASON_LIMIT: usize = 200;
/// Timeout of one request; responses are small.
const TIMEOUT: Duration = Duration::from_secs(30);
const SERVICE: &str = "the hosted installer";

/// Arguments of `atoll versions fetch`.
#[derive(Debug, Clone, Args)]
pub(super) struct FetchArgs {
    /// Base URL of the installer API
    #[arg(long, value_name = "URL", env = "BASE_URL", value_parser = web_address)]
    base_url: Url,
    /// Base URL of the token service
    #[arg(long, value_name = "URL", env = "AUTH_URL", value_parser = web_address)]
    auth_url: Url,
    /// Realm of the token service
    #[arg(long, env = "AUTH_REALM")]
    realm: String,
    /// OAuth client id
    #[arg(long, env = "AUTH_CLIENT_ID")]
    client_id: String,
    /// File with the offline token (refresh token)
    #[arg(long, value_name = "FILE", env = "OFFLINE_TOKEN_FILE")]
    token_file: PathBuf,
    /// Output file
    #[arg(long, value_name = "FILE", default_value = "platform-versions.json")]
    pub(super) output: PathBuf,
    /// CA certificates (PEM) to trust in addition to the system's
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

/// Fetches the versions of the hosted installer, as JSON.
///
/// Errors: Unauthenticated – refused token; NotFound – no list of versions; Invalid – malformed file or response;
/// Unavailable.
pub(super) async fn fetch(arguments: &FetchArgs) -> Result<String, Error> {
    let client = client(arguments)?;
    let token = access_token(&client, arguments).await?;
    let bearer = format!("Bearer {}", token.secret());
    let mut bearer = HeaderValue::from_str(&bearer).map_err(|_| refused("invalid access token"))?;
    bearer.set_sensitive(true);
    for path in VERSIONS {
        let request = client
            .get(below(&arguments.base_url, path)?)
            .header(AUTHORIZATION, bearer.clone())
            .header(CONTENT_TYPE, JSON)
            .header(ACCEPT, JSON);
        let response = request.send().await.map_err(|e| unreachable(e, SERVICE))?;
        let (status, body) = read_response(response).await?;
        if status.is_success() {
            return Ok(String::from_utf8_lossy(&body).into_owned());
        }
        if status != StatusCode::NOT_FOUND {
            let reason = reason(&body, token.secret());
            return Err(refused(&format!("{status}: {reason}")));
        }
    }
    Err(Error::not_found(
        "list of versions below BASE_URL",
        VERSIONS.join(" or "),
    ))
}

/// Exchanges the offline token.
async fn access_token(client: &Client, arguments: &FetchArgs) -> Result<AccessToken, Error> {
    let realm = format!(
        "auth/realms/{}/protocol/openid-connect/token",
        arguments.realm
    );
    let token_url = TokenUrl::from_url(below(&arguments.auth_url, &realm)?);
    let offline = offline_token(arguments)?;
    let oauth =
        BasicClient::new(ClientId::new(arguments.client_id.clone())).set_token_uri(token_url);
    let send = |request: HttpRequest| send(client, request, &offline);
    let exchanged = oauth.exchange_refresh_token(&offline).request_async(&send);
    let exchanged = exchanged.await.map_err(|error| match error {
        RequestTokenError::Request(error) => error,
        // The response is not shown: it may contain a token.
        _ => refused("the response to the offline token has no token"),
    })?;
    Ok(exchanged.access_token().clone())
}

fn offline_token(arguments: &FetchArgs) -> Result<RefreshToken, Error> {
    use std::io::Read as _;
    let path = &arguments.token_file;
    let wrong = |reason: String| Error::invalid(path.display().to_string(), reason);
    let file = std::fs::File::open(path).map_err(|e| wrong(e.to_string()))?;
    let mut text = String::new();
    let mut limited = file.take(TOKEN_LIMIT_BYTES);
    limited
        .read_to_string(&mut text)
        .map_err(|e| wrong(e.to_string()))?;
    let text = text.trim();
    if text.is_empty() || text.contains(char::is_whitespace) {
        return Err(wrong("no token: one line is expected".to_owned()));
    }
    Ok(RefreshToken::new(text.to_owned()))
}

/// Sends requests of the OAuth library through our client.
async fn send(
    client: &Client,
    request: HttpRequest,
    offline: &RefreshToken,
) -> Result<HttpResponse, Error> {
    let request = request
        .try_into()
        .map_err(|e: reqwest::Error| Error::internal("requesting a token", e.without_url()))?;
    let response = client.execute(request).await;
    let response = response.map_err(|e| unreachable(e, "the token service"))?;
    let (status, body) = read_response(response).await?;
    if !status.is_success() {
        let reason = reason(&body, offline.secret());
        return Err(refused(&format!("{status} to the offline token: {reason}")));
    }
    Ok(HttpResponse::new(body))
}

fn client(arguments: &FetchArgs) -> Result<Client, Error> {
    let read = |path: &PathBuf| {
        std::fs::read(path).map_err(|e| Error::invalid("ca", format!("{}: {e}", path.display())))
    };
    let ca_pem = arguments.ca.as_ref().map(read).transpose()?;
    let client = Client::builder()
        .timeout(TIMEOUT)
        // Tokens must not follow redirects to other hosts.
        .redirect(redirect::Policy::none())
        .dns_resolver(Resolver::system())
        .tls_backend_preconfigured(trust::client_config(ca_pem.as_deref(), false)?)
        .build();
    client.map_err(|e| Error::internal("building the web client", e))
}

async fn read_response(mut response: Response) -> Result<(StatusCode, Vec<u8>), Error> {
    let (status, mut body) = (response.status(), Vec::new());
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|e| unreachable(e, SERVICE))?
    {
        if body.len() + chunk.len() > RESPONSE_LIMIT_BYTES {
            return Err(Error::TooLarge {
                what: "the response of the hosted installer",
                limit: RESPONSE_LIMIT_BYTES as u64,
            });
        }
        body.extend_from_slice(&chunk);
    }
    Ok((status, body))
}

fn below(address: &Url, path: &str) -> Result<Url, Error> {
    let whole = format!("{}/{path}", address.as_str().trim_end_matches('/'));
    whole
        .parse()
        .map_err(|_| Error::invalid("url", format!("cannot append {path}")))
}

/// Error text of a response, with `secret` redacted.
fn reason(body: &[u8], secret: &str) -> String {
    let body = String::from_utf8_lossy(body).replace(secret, "…");
    let members = ["error", "error_description", "reason", "message"];
    let json: Option<serde_json::Value> = serde_json::from_str(&body).ok();
    let texts = json.iter().flat_map(|json| {
        let members = members.iter();
        members.filter_map(|member| json.get(member)?.as_str())
    });
    let texts: Vec<&str> = texts.collect();
    let text = match texts.as_slice() {
        [] => body.trim().to_owned(),
        some => some.join(": "),
    };
    let text: String = text.chars().take(REASON_LIMIT).collect();
    text.replace(char::is_control, " ")
}

fn refused(reason: &str) -> Error {
    Error::Unauthenticated {
        reason: format!("{SERVICE}: {reason}"),
    }
}

fn unreachable(error: reqwest::Error, service: &'static str) -> Error {
    Error::unavailable(service, model::error::chain(&error.without_url()))
}

#[cfg(test)]
mod tests;
