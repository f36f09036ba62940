//! The hosted installer: who may ask it says so by a token that a long-lived one is exchanged for.
//!
//! Neither of them reaches a message, a log or the command line.

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
use reqwest::{Client, Response, Url, redirect};

/// Where the versions are, below the address of the service.
const VERSIONS: &str = "api/assisted-install/v2/platform-versions";
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Units: bytes. The list of versions takes some ten thousand.
const ANSWER_LIMIT_BYTES: usize = 8 << 20;
/// Units: bytes. Tokens take a few thousand.
const TOKEN_LIMIT_BYTES: u64 = 64 << 10;
/// How much of an answer that is no JSON is told. Units: characters.
const REASON_LIMIT: usize = 200;
/// The whole of an exchange; the answers are small.
const TIMEOUT: Duration = Duration::from_secs(30);
const SERVICE: &str = "the hosted installer";

/// Where the hosted installer is, and who asks it.
#[derive(Debug, Clone, Args)]
pub(super) struct FetchArgs {
    /// Address of the installer's API
    #[arg(long, value_name = "URL", env = "BASE_URL")]
    base_url: Url,
    /// Address of the service that gives tokens
    #[arg(long, value_name = "URL", env = "AUTH_URL")]
    auth_url: Url,
    /// The realm there
    #[arg(long, env = "AUTH_REALM")]
    realm: String,
    /// As which client it is asked
    #[arg(long, env = "AUTH_CLIENT_ID")]
    client_id: String,
    /// File with the offline token
    #[arg(long, value_name = "FILE", env = "OFFLINE_TOKEN_FILE")]
    token_file: PathBuf,
    /// The file for the versions
    #[arg(long, value_name = "FILE", default_value = "platform-versions.json")]
    pub(super) output: PathBuf,
    /// Certificates (PEM) that are trusted besides the system's
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

/// What the hosted installer can install, as it tells it.
///
/// Errors: Unauthenticated – it does not take the token; Invalid – a file or an answer that cannot be used; Unavailable.
pub(super) async fn fetch(arguments: &FetchArgs) -> Result<String, Error> {
    let client = client(arguments)?;
    let token = access_token(&client, arguments).await?;
    let bearer = format!("Bearer {}", token.secret());
    let mut bearer = HeaderValue::from_str(&bearer)
        .map_err(|_| refused("the token that it gave cannot stand in a header"))?;
    bearer.set_sensitive(true);
    let request = client
        .get(below(&arguments.base_url, VERSIONS)?)
        .header(AUTHORIZATION, bearer)
        .header(CONTENT_TYPE, JSON)
        .header(ACCEPT, JSON);
    let response = request.send().await.map_err(|e| unreachable(e, SERVICE))?;
    let (status, body) = answer(response).await?;
    if !status.is_success() {
        let said = reason(&body, token.secret());
        return Err(refused(&format!("it answered {status}: {said}")));
    }
    Ok(String::from_utf8_lossy(&body).into_owned())
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
        // What it sent instead may have a token in it.
        _ => refused("its answer to the offline token has no token"),
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
        return Err(wrong("it has no token: one line is expected".to_owned()));
    }
    Ok(RefreshToken::new(text.to_owned()))
}

/// The way of requests of the OAuth library through our client.
async fn send(
    client: &Client,
    request: HttpRequest,
    offline: &RefreshToken,
) -> Result<HttpResponse, Error> {
    let request = request
        .try_into()
        .map_err(|e: reqwest::Error| Error::internal("asking for a token", e.without_url()))?;
    let response = client.execute(request).await;
    let response = response.map_err(|e| unreachable(e, "the service that gives tokens"))?;
    let (status, body) = answer(response).await?;
    if !status.is_success() {
        let said = reason(&body, offline.secret());
        return Err(refused(&format!(
            "it answered {status} to the offline token: {said}"
        )));
    }
    Ok(HttpResponse::new(body))
}

fn client(arguments: &FetchArgs) -> Result<Client, Error> {
    let ca_pem = arguments.ca.as_ref().map(std::fs::read).transpose();
    let ca_pem = ca_pem.map_err(|e| Error::invalid("ca", e.to_string()))?;
    let client = Client::builder()
        .timeout(TIMEOUT)
        // Tokens go to whom they are for.
        .redirect(redirect::Policy::none())
        .dns_resolver(Resolver::system())
        .tls_backend_preconfigured(trust::client_config(ca_pem.as_deref(), false)?)
        .build();
    client.map_err(|e| Error::internal("building the web client", e))
}

async fn answer(mut response: Response) -> Result<(reqwest::StatusCode, Vec<u8>), Error> {
    let (status, mut body) = (response.status(), Vec::new());
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|e| unreachable(e, SERVICE))?
    {
        if body.len() + chunk.len() > ANSWER_LIMIT_BYTES {
            return Err(Error::TooLarge {
                what: "the answer of the hosted installer",
                limit: ANSWER_LIMIT_BYTES as u64,
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
        .map_err(|_| Error::invalid("url", format!("{path} cannot lie below the address")))
}

/// What an answer says of itself, without a secret that came back in it.
fn reason(body: &[u8], secret: &str) -> String {
    let body = String::from_utf8_lossy(body).replace(secret, "…");
    let members = ["error", "error_description", "reason", "message"];
    let json: Option<serde_json::Value> = serde_json::from_str(&body).ok();
    let said = json.iter().flat_map(|json| {
        let members = members.iter();
        members.filter_map(|member| json.get(member)?.as_str())
    });
    let said: Vec<&str> = said.collect();
    let said = match said.as_slice() {
        [] => body.trim().to_owned(),
        some => some.join(": "),
    };
    let said: String = said.chars().take(REASON_LIMIT).collect();
    said.replace(char::is_control, " ")
}

fn refused(reason: &str) -> Error {
    Error::Unauthenticated {
        reason: format!("{SERVICE}: {reason}"),
    }
}

fn unreachable(error: reqwest::Error, what: &'static str) -> Error {
    Error::unavailable(what, model::error::chain(&error.without_url()))
}

#[cfg(test)]
mod tests;
