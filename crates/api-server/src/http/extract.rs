//! What handlers take from a request, with the description's own messages for what does not fit.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::request::Parts;
use model::ids::{ClusterId, HostId, InfraEnvId};
use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

use super::error::Refusal;
use crate::blocking::{self, LARGE_TEXT};

const JSON: &str = "application/json";
const BYTES: &str = "application/octet-stream";
/// Units: bytes of a body. A manifest of 1 MiB in base64 stays below.
pub(crate) const BODY_LIMIT: usize = 2 << 20;
/// Units: bytes of a step's reply: the longest output that is taken, with escapes.
pub(crate) const REPLY_LIMIT: usize = 12 << 20;

/// `{cluster_id}` of the path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InCluster(pub(crate) ClusterId);

/// `{infra_env_id}` of the path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InInfraEnv(pub(crate) InfraEnvId);

/// `{infra_env_id}` and `{host_id}` of the path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfHost(pub(crate) InfraEnvId, pub(crate) HostId);

async fn path_id<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    name: &str,
) -> Result<Uuid, Refusal> {
    let params = RawPathParams::from_request_parts(parts, state).await;
    let params = params.map_err(|error| Refusal::Request(error.to_string()))?;
    let value = params
        .iter()
        .find(|(key, _)| *key == name)
        .map_or("", |(_, value)| value);
    parse_uuid(name, "path", value)
}

/// Reads an id. The hyphenless and braced spellings that the parser also knows are not ids of this API.
pub(crate) fn parse_uuid(name: &str, place: &str, value: &str) -> Result<Uuid, Refusal> {
    match Uuid::parse_str(value) {
        Ok(id) if value.len() == uuid::fmt::Hyphenated::LENGTH => Ok(id),
        _ => Err(Refusal::parameter(
            name,
            place,
            format_args!("must be of type uuid: {value:?}"),
        )),
    }
}

impl<S: Send + Sync> FromRequestParts<S> for InCluster {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        path_id(parts, state, "cluster_id")
            .await
            .map(|id| Self(ClusterId(id)))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for InInfraEnv {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        path_id(parts, state, "infra_env_id")
            .await
            .map(|id| Self(InfraEnvId(id)))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for OfHost {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let infra_env = path_id(parts, state, "infra_env_id").await?;
        let host = path_id(parts, state, "host_id").await?;
        Ok(Self(InfraEnvId(infra_env), HostId(host)))
    }
}

/// A JSON body that is parsed when the handler names it. A route with another `LIMIT` has the layer that admits it.
#[derive(Debug, Clone)]
pub(crate) struct Body<const LIMIT: usize = BODY_LIMIT>(Bytes);

impl<S: Send + Sync, const LIMIT: usize> FromRequest<S> for Body<LIMIT> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let kind = request
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        if let Some(kind) = kind {
            let essence = kind.split(';').next().unwrap_or_default().trim();
            if !essence.eq_ignore_ascii_case(JSON) {
                return Err(Refusal::Request(format!(
                    "unsupported media type {essence:?}, only [{JSON}] are allowed"
                )));
            }
        }
        read(request, state, LIMIT).await.map(Self)
    }
}

async fn read<S: Send + Sync>(request: Request, state: &S, limit: usize) -> Result<Bytes, Refusal> {
    let bytes = Bytes::from_request(request, state).await;
    bytes.map_err(|error| {
        if error.status() == axum::http::StatusCode::PAYLOAD_TOO_LARGE {
            return Refusal::Domain(model::Error::TooLarge {
                what: "the body",
                limit: limit as u64,
            });
        }
        Refusal::Request(format!("the body could not be read: {}", error.body_text()))
    })
}

impl<const LIMIT: usize> Body<LIMIT> {
    /// Parses the body, which the description calls `name`; a large one where it delays no other request.
    pub(crate) fn parse<T: DeserializeOwned>(&self, name: &str) -> Result<T, Refusal> {
        blocking::unless_short(self.0.len() > LARGE_TEXT, || self.parse_here(name))
    }

    fn parse_here<T: DeserializeOwned>(&self, name: &str) -> Result<T, Refusal> {
        let required = || Refusal::parameter(name, "body", "is required");
        if self.0.iter().all(u8::is_ascii_whitespace) {
            return Err(required());
        }
        let mut value: Value = serde_json::from_slice(&self.0)
            .map_err(|error| unparsable(name, &error.to_string()))?;
        match value {
            Value::Null => return Err(required()),
            // A record would take a list for the values of its members.
            Value::Array(_) => return Err(unparsable(name, "it is a list")),
            _ => drop_nulls(&mut value),
        }
        serde_path_to_error::deserialize(value).map_err(|error| refuse(name, &error))
    }
}

/// Clients send `null` for what they do not set: to this API that is the same as not sending it.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn refuse(name: &str, error: &serde_path_to_error::Error<serde_json::Error>) -> Refusal {
    let path = error.path().to_string();
    let cause = error.inner().to_string();
    // So do the closed sets of the description refuse what they do not hold.
    let known = cause.split_once(": it should be one of [");
    if let Some((_, known)) = known.filter(|_| path != ".") {
        return Refusal::parameter(&path, "body", format_args!("should be one of [{known}"));
    }
    if cause.starts_with("UUID parsing failed") {
        return Refusal::parameter(&path, "body", "must be of type uuid");
    }
    let missing = cause
        .strip_prefix("missing field `")
        .and_then(|rest| rest.split('`').next());
    if let Some(field) = missing {
        let field = if path == "." {
            field.to_owned()
        } else {
            format!("{path}.{field}")
        };
        return Refusal::parameter(&field, "body", "is required");
    }
    match path.as_str() {
        "." | "?" => unparsable(name, &cause),
        path => unparsable(name, &format!("{path}: {cause}")),
    }
}

fn unparsable(name: &str, cause: &str) -> Refusal {
    Refusal::Request(format!(
        "parsing {name} body from \"\" failed, because {cause}"
    ))
}

/// Refuses a request whose `Accept` rules out what the operation answers with.
pub(crate) fn check_accept(parts: &axum::http::HeaderMap, is_file: bool) -> Result<(), Refusal> {
    let mut values = parts.get_all(ACCEPT).iter().peekable();
    if values.peek().is_none() {
        return Ok(());
    }
    let mut ranges = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    let fits = ranges.any(|range| {
        let essence = range
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        matches!(essence.as_str(), "" | "*" | "*/*" | "application/*" | JSON)
            || (is_file && essence == BYTES)
    });
    if fits {
        return Ok(());
    }
    let offered = if is_file { BYTES } else { JSON };
    Err(Refusal::Request(format!(
        "unsupported media type requested, only [{offered}] are available"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::cluster::ClusterCreateParams;

    fn message(body: &str) -> String {
        let body: Body = Body(Bytes::copy_from_slice(body.as_bytes()));
        body.parse::<ClusterCreateParams>("new-cluster-params")
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_body_is_refused_with_its_field() {
        for (body, part) in [
            ("", "new-cluster-params in body is required"),
            ("{}", "name in body is required"),
            (
                "{",
                "parsing new-cluster-params body from \"\" failed, because EOF",
            ),
            ("[]", "failed, because it is a list"),
            ("null", "new-cluster-params in body is required"),
            (r#"{"name":null}"#, "name in body is required"),
            (r#"{"name":1}"#, "failed, because name: invalid type"),
            (
                r#"{"name":"x","openshift_version":"4.18","pull_secret":"{}","network_type":"x"}"#,
                "network_type in body should be one of [OpenShiftSDN OVNKubernetes",
            ),
            (
                r#"{"nome":"x"}"#,
                "failed, because nome: unknown field `nome`",
            ),
            (
                r#"{"name":"x","openshift_version":"4.18","pull_secret":"{}"} x"#,
                "trailing characters",
            ),
        ] {
            let message = message(body);
            assert!(message.contains(part), "{body}: {message}");
        }
    }

    #[test]
    fn null_is_the_same_as_nothing() {
        let body = r#"{"name":"x","openshift_version":"4.18","pull_secret":"{}","base_dns_domain":null,
            "machine_networks":[{"cidr":null}],"platform":{"type":"none","external":null}}"#;
        let params: ClusterCreateParams = Body::<BODY_LIMIT>(Bytes::from_static(body.as_bytes()))
            .parse("x")
            .unwrap();
        assert_eq!(params.base_dns_domain, "");
    }

    #[test]
    fn only_hyphenated_ids_are_ids() {
        assert!(parse_uuid("cluster_id", "path", "2b9b1b1e-7f0e-4f0e-8f0e-2b9b1b1e7f0e").is_ok());
        let error = parse_uuid("cluster_id", "path", "x").unwrap_err();
        assert_eq!(
            error.to_string(),
            "cluster_id in path must be of type uuid: \"x\""
        );
        assert!(parse_uuid("cluster_id", "path", "2b9b1b1e7f0e4f0e8f0e2b9b1b1e7f0e").is_err());
    }
}
