//! The check of served catalogs for `atoll doctor`: health, and the list of packages, by gRPC.

use std::net::SocketAddr;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::{CONTENT_TYPE, TE};
use bytes::{Buf as _, BytesMut};
use catalog::api::{ListPackageRequest, PackageName};
use http_body_util::BodyExt as _;
use prost::Message;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::call::{PREFIX_BYTES, framed, grpc_error};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest message of a reply. Units: bytes.
const MAX_MESSAGE: usize = 64 << 10;
/// Packages of one catalog; the largest public ones have hundreds.
const MAX_PACKAGES: usize = 100_000;

/// Problem of a served catalog.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServedCatalogError {
    /// Nothing accepts connections.
    #[error("no connection: {0}")]
    Unreachable(String),
    /// It is no catalog server, or the call failed.
    #[error("the call failed: {0}")]
    Call(String),
    /// It has no catalog yet.
    #[error("the catalog is not loaded")]
    NotLoaded,
}

/// Number of packages of the catalog `name` that is served at `address`.
///
/// Errors: [`ServedCatalogError`].
pub async fn served_packages(name: &str, address: SocketAddr) -> Result<usize, ServedCatalogError> {
    // Servers of several catalogs choose by the first labels of the name that was dialled; those at loopback addresses take
    // names of this machine alone.
    let host = format!("{name}.localhost");
    let tls = net::trust::client_config(None, false);
    let client = reqwest::Client::builder()
        .no_proxy()
        .http2_prior_knowledge()
        .tls_backend_preconfigured(tls.map_err(|e| ServedCatalogError::Call(e.to_string()))?)
        .resolve(&host, address)
        .connect_timeout(CONNECT_TIMEOUT)
        .build()
        .map_err(|e| ServedCatalogError::Call(e.to_string()))?;
    let call = GrpcClient {
        client,
        base: format!("http://{host}:{}", address.port()),
    };
    let health = HealthCheckRequest::default();
    let health = call.all::<_, HealthCheckResponse>("grpc.health.v1.Health/Check", &health, 1);
    let is_serving = |one: &HealthCheckResponse| one.status() == ServingStatus::Serving;
    if !health.await?.iter().any(is_serving) {
        return Err(ServedCatalogError::NotLoaded);
    }
    let list = ListPackageRequest::default();
    let packages = call.all::<_, PackageName>("api.Registry/ListPackages", &list, MAX_PACKAGES);
    Ok(packages.await?.len())
}

struct GrpcClient {
    client: reqwest::Client,
    base: String,
}

impl GrpcClient {
    /// Messages of one reply, at most `limit`.
    async fn all<Q: Message, A: Message + Default>(
        &self,
        method: &str,
        request: &Q,
        limit: usize,
    ) -> Result<Vec<A>, ServedCatalogError> {
        let failed = |text: String| ServedCatalogError::Call(text);
        let response = self
            .client
            .post(format!("{}/{method}", self.base))
            .header(CONTENT_TYPE, "application/grpc")
            .header(TE, "trailers")
            .body(framed(&request.encode_to_vec()))
            .send()
            .await
            .map_err(|error| {
                let is_connect = error.is_connect();
                let text = model::error::chain(&error.without_url());
                if is_connect {
                    ServedCatalogError::Unreachable(text)
                } else {
                    ServedCatalogError::Call(text)
                }
            })?;
        if !response.status().is_success() || !is_grpc(response.headers()) {
            return Err(failed("it is not a gRPC server".to_owned()));
        }
        if let Some(error) = grpc_error(response.headers()) {
            return Err(failed(error));
        }
        let mut body = reqwest::Body::from(response);
        let (mut messages, mut bytes) = (Vec::new(), BytesMut::new());
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|e| failed(e.without_url().to_string()))?;
            match frame.into_data() {
                Ok(data) => bytes.extend_from_slice(&data),
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    if let Some(error) = grpc_error(&trailers) {
                        return Err(failed(error));
                    }
                }
            }
            while let Some(message) = next(&mut bytes)? {
                let decoded = A::decode(message).map_err(|e| failed(e.to_string()))?;
                messages.push(decoded);
                if messages.len() > limit {
                    return Err(failed(format!("more than {limit} messages")));
                }
            }
        }
        Ok(messages)
    }
}

/// Takes the next whole message.
///
/// Errors: a longer one than any of a list.
fn next(bytes: &mut BytesMut) -> Result<Option<bytes::Bytes>, ServedCatalogError> {
    let Some(prefix) = bytes.first_chunk::<PREFIX_BYTES>() else {
        return Ok(None);
    };
    let [_, length @ ..] = *prefix;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > MAX_MESSAGE {
        let text = format!("a message has {length} bytes, at most {MAX_MESSAGE} are expected");
        return Err(ServedCatalogError::Call(text));
    }
    if bytes.len() < PREFIX_BYTES + length {
        return Ok(None);
    }
    bytes.advance(PREFIX_BYTES);
    Ok(Some(bytes.split_to(length).freeze()))
}

fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_bounded() {
        let frame = |length: usize| {
            let mut bytes = BytesMut::from(&framed(&vec![0; length])[..]);
            next(&mut bytes).map(|message| message.map(|message| message.len()))
        };
        assert_eq!(frame(MAX_MESSAGE), Ok(Some(MAX_MESSAGE)));
        let error = frame(MAX_MESSAGE + 1).unwrap_err();
        assert!(error.to_string().contains("at most"), "{error}");
        let mut partial = BytesMut::from(&framed(&[1, 2, 3])[..7]);
        assert_eq!(next(&mut partial), Ok(None));
        assert_eq!(next(&mut BytesMut::new()), Ok(None));
    }
}
