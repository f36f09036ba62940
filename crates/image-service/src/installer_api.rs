//! Client of the installer API: ignition, ramdisk and kernel arguments of an image.

use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt as _;
use model::Error;
use reqwest::header::{HeaderValue, LAST_MODIFIED};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use uuid::Uuid;

use crate::os_image::OsImage;

/// Name of the service in errors.
const API: &str = "the installer API";
/// Timeout of a call: clients of the image service would not wait longer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Longest response. Units: bytes. Many times the embed area of an image.
pub(crate) const MAX_ANSWER: usize = 4 << 20;
/// Longest reason of the API that is passed on. Units: characters.
const MAX_REASON: usize = 500;

/// Credentials of a request, forwarded unchecked: the API verifies them.
#[derive(Clone)]
pub(crate) enum RequestCredentials {
    /// No credentials.
    None,
    /// Query parameter `api_key`.
    ApiKey(String),
    /// Header `Image-Token`.
    ImageToken(String),
    /// Header `Authorization`.
    Authorization(HeaderValue),
}

/// The installer API.
#[derive(Debug, Clone)]
pub(crate) struct InstallerApi {
    client: Client,
    /// Without a slash at the end.
    origin: String,
    /// Up to the infra-envs, without a slash at the end.
    base: String,
    /// Of each call.
    timeout: Duration,
}

/// A configuration and when it last changed.
pub(crate) struct Ignition {
    pub(crate) json: Bytes,
    pub(crate) modified: Option<SystemTime>,
}

/// Members of an infra-env.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct InfraEnv {
    /// Operations on the kernel arguments, as JSON.
    pub(crate) kernel_arguments: Option<String>,
    /// The discovery agent is inside the image.
    pub(crate) embedded_agent: bool,
    /// Time of its last change.
    pub(crate) updated_at: Option<String>,
}

#[derive(Deserialize)]
struct KernelArgument {
    operation: String,
    value: String,
}

/// The two shapes of the API's errors.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ApiRefusal {
    reason: Option<String>,
    message: Option<String>,
}

impl InstallerApi {
    pub(crate) fn new(client: Client, origin: &str) -> Self {
        let base = format!("{origin}/api/assisted-install/v2/infra-envs");
        Self {
            client,
            origin: origin.to_owned(),
            base,
            timeout: TIMEOUT,
        }
    }

    /// The discovery ignition; `image_type` as in `full-iso`.
    pub(crate) async fn ignition(
        &self,
        id: Uuid,
        image_type: Option<&str>,
        credentials: &RequestCredentials,
    ) -> Result<Ignition, Error> {
        let mut request = self.get(id, "/downloads/files", credentials);
        if let Some(image_type) = image_type {
            request = request.query(&[("discovery_iso_type", image_type)]);
        }
        let request = request.query(&[("file_name", "discovery.ign")]);
        let response = accepted(id, send(request).await?).await?;
        let modified = response
            .headers()
            .get(LAST_MODIFIED)
            .and_then(|value| httpdate::parse_http_date(value.to_str().ok()?).ok());
        let json = body(response).await?;
        Ok(Ignition { json, modified })
    }

    /// The ramdisk of a network boot; absent when empty (204).
    pub(crate) async fn minimal_initrd(
        &self,
        id: Uuid,
        credentials: &RequestCredentials,
    ) -> Result<Option<Bytes>, Error> {
        let request = self.get(id, "/downloads/minimal-initrd", credentials);
        let response = accepted(id, send(request).await?).await?;
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        body(response)
            .await
            .map(|archive| Some(archive).filter(|archive| !archive.is_empty()))
    }

    /// The OS images beside those of the settings; none where the API has no such path.
    ///
    /// Errors: Unavailable; Internal – the response is no list.
    pub(crate) async fn os_images(&self) -> Result<Option<Vec<OsImage>>, Error> {
        let request = self.client.get(format!("{}/os-images", self.origin));
        let response = send(request.timeout(self.timeout)).await?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => return Ok(None),
            status => return Err(Error::unavailable(API, format!("it answered {status}"))),
        }
        let json = body(response).await?;
        serde_json::from_slice(&json)
            .map_err(|error| Error::internal("reading the OS images of the installer API", error))
    }

    /// The infra-env.
    pub(crate) async fn infra_env(
        &self,
        id: Uuid,
        credentials: &RequestCredentials,
    ) -> Result<InfraEnv, Error> {
        let response = accepted(id, send(self.get(id, "", credentials)).await?).await?;
        let json = body(response).await?;
        serde_json::from_slice(&json)
            .map_err(|error| Error::internal("reading the infra-env", error))
    }

    fn get(&self, id: Uuid, path: &str, credentials: &RequestCredentials) -> RequestBuilder {
        let request = self
            .client
            .get(format!("{}/{id}{path}", self.base))
            .timeout(self.timeout);
        match credentials {
            RequestCredentials::None => request,
            RequestCredentials::ApiKey(key) => request.query(&[("api_key", key)]),
            RequestCredentials::ImageToken(token) => request.header("Image-Token", token),
            RequestCredentials::Authorization(value) => {
                request.header(reqwest::header::AUTHORIZATION, value)
            }
        }
    }
}

impl InfraEnv {
    /// Kernel arguments to add.
    pub(crate) fn kargs(&self) -> Result<Vec<String>, Error> {
        kernel_arguments(self.kernel_arguments.as_deref().unwrap_or_default())
    }
}

fn kernel_arguments(text: &str) -> Result<Vec<String>, Error> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let arguments: Vec<KernelArgument> = serde_json::from_str(text).map_err(|error| {
        Error::conflict(format!(
            "the infra-env's kernel_arguments are not a list of operations: {error}"
        ))
    })?;
    let value = |argument: KernelArgument| match argument.operation.as_str() {
        "append" => Ok(argument.value),
        other => Err(Error::conflict(format!(
            "the infra-env's kernel_arguments hold the operation {other:?}; only append can be applied to an image"
        ))),
    };
    arguments.into_iter().map(value).collect()
}

/// The URL may hold credentials, so it stays out of errors; assisted-image-service leaks it.
fn unavailable(error: reqwest::Error) -> Error {
    Error::unavailable(API, error.without_url())
}

async fn send(request: RequestBuilder) -> Result<Response, Error> {
    request.send().await.map_err(unavailable)
}

/// The response if successful; else the API's error as ours.
async fn accepted(id: Uuid, response: Response) -> Result<Response, Error> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        return Err(Error::unavailable(API, format!("it answered {status}")));
    }
    let refusal: ApiRefusal = match body(response).await {
        Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
        Err(_) => ApiRefusal::default(),
    };
    let reason = refusal.reason.or(refusal.message).map_or_else(
        || format!("the installer API answered {status}"),
        |reason| reason.chars().take(MAX_REASON).collect(),
    );
    Err(match status {
        StatusCode::UNAUTHORIZED => Error::Unauthenticated { reason },
        StatusCode::FORBIDDEN => Error::Forbidden { reason },
        StatusCode::NOT_FOUND => Error::not_found("infra-env", id),
        StatusCode::CONFLICT => Error::Conflict { reason },
        _ => Error::invalid("infra-env", reason),
    })
}

async fn body(response: Response) -> Result<Bytes, Error> {
    let mut whole = BytesMut::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.try_next().await.map_err(unavailable)? {
        if whole.len() + chunk.len() > MAX_ANSWER {
            let limit = MAX_ANSWER as u64;
            return Err(Error::TooLarge {
                what: "the installer API's answer",
                limit,
            });
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(whole.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_api_that_does_not_answer_is_unavailable() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let api = InstallerApi {
            timeout: Duration::from_millis(50),
            ..InstallerApi::new(service::http_client(None, false).unwrap(), &origin)
        };
        let credentials = RequestCredentials::ApiKey("hunter2".to_owned());
        let refused = api
            .infra_env(Uuid::nil(), &credentials)
            .await
            .err()
            .unwrap();
        assert!(matches!(refused, Error::Unavailable { .. }), "{refused}");
        assert!(!model::error::chain(&refused).contains("hunter2"));
    }

    #[test]
    fn kernel_arguments_are_read() {
        assert_eq!(kernel_arguments("").unwrap(), Vec::<String>::new());
        let text = r#"[{"operation":"append","value":"a=b"},{"operation":"append","value":"c"}]"#;
        assert_eq!(kernel_arguments(text).unwrap(), ["a=b", "c"]);
        for wrong in ["nonsense", r#"[{"operation":"delete","value":"x"}]"#] {
            assert!(matches!(
                kernel_arguments(wrong),
                Err(Error::Conflict { .. })
            ));
        }
    }
}
