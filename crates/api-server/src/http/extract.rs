//! Extractors of handlers, with the API description's own messages for violations.
//!
//! Source: openshift/assisted-service, observed over HTTP: texts, and 400 in place of 406, 415 and 422.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::request::Parts;
use model::ids::{ClusterId, HostId, InfraEnvId, JobId};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

use super::error::ApiError;
use super::patterns;
use crate::blocking::{self, LARGE_TEXT};
use crate::operations::ResponseContent;

pub(crate) const JSON: &str = "application/json";
/// Body limit: a manifest of 1 MiB in base64 fits. Units: bytes.
pub(crate) const BODY_LIMIT: usize = 2 << 20;
/// Body limit of a step reply: the longest accepted output, with escapes. Units: bytes.
pub(crate) const REPLY_LIMIT: usize = 12 << 20;

/// Bodies of new and changed clusters.
const CLUSTER_BODIES: &[&str] = &["new-cluster-params", "cluster-update-params"];

/// `{cluster_id}` of the path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InCluster(pub(crate) ClusterId);

/// `{infra_env_id}` of the path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InInfraEnv(pub(crate) InfraEnvId);

/// `{infra_env_id}` and `{host_id}` of the path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfHost(pub(crate) InfraEnvId, pub(crate) HostId);

/// `{job_id}` of the path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfJob(pub(crate) JobId);

/// `{validation_id}` of the path.
#[derive(Debug, Clone)]
pub(crate) struct OfValidation(pub(crate) String);

async fn path_id<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    name: &str,
) -> Result<Uuid, ApiError> {
    parse_uuid(name, "path", &path_text(parts, state, name).await?)
}

async fn path_text<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    name: &str,
) -> Result<String, ApiError> {
    let params = RawPathParams::from_request_parts(parts, state).await;
    let params = params.map_err(|error| ApiError::Request(error.to_string()))?;
    let mut found = params.iter().filter(|(key, _)| *key == name);
    Ok(found
        .next()
        .map_or_else(String::new, |(_, value)| value.to_owned()))
}

/// Parses an id: hyphenated only, although the parser accepts other spellings.
pub(crate) fn parse_uuid(name: &str, place: &str, value: &str) -> Result<Uuid, ApiError> {
    match Uuid::parse_str(value) {
        Ok(id) if value.len() == uuid::fmt::Hyphenated::LENGTH => Ok(id),
        _ => Err(ApiError::parameter(
            name,
            place,
            format_args!("must be of type uuid: {value:?}"),
        )),
    }
}

impl<S: Send + Sync> FromRequestParts<S> for InCluster {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        path_id(parts, state, "cluster_id")
            .await
            .map(|id| Self(ClusterId(id)))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for InInfraEnv {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        path_id(parts, state, "infra_env_id")
            .await
            .map(|id| Self(InfraEnvId(id)))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for OfHost {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let infra_env = path_id(parts, state, "infra_env_id").await?;
        let host = path_id(parts, state, "host_id").await?;
        Ok(Self(InfraEnvId(infra_env), HostId(host)))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for OfJob {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        path_id(parts, state, "job_id")
            .await
            .map(|id| Self(JobId(id)))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for OfValidation {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        path_text(parts, state, "validation_id").await.map(Self)
    }
}

/// A JSON body, parsed by the handler. A route with another `LIMIT` has a layer with that limit.
#[derive(Debug, Clone)]
pub(crate) struct JsonBody<const LIMIT: usize = BODY_LIMIT>(Bytes);

impl<S: Send + Sync, const LIMIT: usize> FromRequest<S> for JsonBody<LIMIT> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let media_type = media_type(request.headers());
        let refused = check_media_type(media_type.as_deref(), &[JSON]);
        if media_type.is_some() {
            refused?;
            return read(request, state, LIMIT).await.map(Self);
        }
        let bytes = read(request, state, LIMIT).await?;
        if !bytes.is_empty() {
            refused?;
        }
        Ok(Self(bytes))
    }
}

/// The media type of a body in lower case, without its parameters; none if the request has no header for it.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(CONTENT_TYPE)?.to_str().unwrap_or_default();
    let essence = text.split(';').next().unwrap_or_default();
    Some(essence.trim().to_ascii_lowercase())
}

/// Refuses bodies of other media types than `allowed`. A web page sends the types of forms, and bodies without a type,
/// without asking the server before.
///
/// Source: the Fetch standard, CORS-safelisted request headers; go-openapi, in which a body without a type is a file.
pub(crate) fn check_media_type(found: Option<&str>, allowed: &[&str]) -> Result<(), ApiError> {
    let found = found.unwrap_or("application/octet-stream");
    if allowed.contains(&found) {
        return Ok(());
    }
    let allowed = allowed.join(" ");
    Err(ApiError::Request(format!(
        "unsupported media type {found:?}, only [{allowed}] are allowed"
    )))
}

pub(crate) async fn read<S: Send + Sync>(
    request: Request,
    state: &S,
    limit: usize,
) -> Result<Bytes, ApiError> {
    let bytes = Bytes::from_request(request, state).await;
    bytes.map_err(|error| {
        if error.status() == axum::http::StatusCode::PAYLOAD_TOO_LARGE {
            return ApiError::Domain(model::Error::TooLarge {
                what: "the body",
                limit: limit as u64,
            });
        }
        ApiError::Request(format!("the body could not be read: {}", error.body_text()))
    })
}

impl<const LIMIT: usize> JsonBody<LIMIT> {
    /// Parses the body, `name` in the API description; a large one outside the runtime's workers.
    pub(crate) fn parse<T: DeserializeOwned>(&self, name: &str) -> Result<T, ApiError> {
        blocking::unless_short(self.0.len() > LARGE_TEXT, || self.parse_here(name))
    }

    /// The body with the replacement character for bytes and escapes that are no characters.
    pub(crate) fn with_whole_characters(&self) -> Self {
        let text = String::from_utf8_lossy(&self.0);
        let text = rules::json_text::with_whole_characters(&text).into_owned();
        Self(text.into())
    }

    /// Reads only the structure of the body; none if it has another.
    pub(crate) fn sent<'a, T: Deserialize<'a>>(&'a self) -> Option<T> {
        // serde accepts a list for a struct.
        let is_list = self.0.trim_ascii_start().first() == Some(&b'[');
        (!is_list).then(|| serde_json::from_slice(&self.0).ok())?
    }

    fn parse_here<T: DeserializeOwned>(&self, name: &str) -> Result<T, ApiError> {
        let required = || ApiError::parameter(name, "body", "is required");
        if self.0.iter().all(u8::is_ascii_whitespace) {
            return Err(required());
        }
        let mut value: Value = serde_json::from_slice(&self.0)
            .map_err(|error| unparsable(name, &error.to_string()))?;
        match value {
            Value::Null => return Err(required()),
            // serde accepts a list for a struct.
            Value::Array(_) => return Err(unparsable(name, "it is a list")),
            _ => drop_nulls(&mut value),
        }
        if CLUSTER_BODIES.contains(&name) {
            patterns::check_cluster(&value)?;
        }
        serde_path_to_error::deserialize(value).map_err(|error| refuse(name, &error))
    }
}

/// Removes null members: clients send `null` for unset values.
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

fn refuse(name: &str, error: &serde_path_to_error::Error<serde_json::Error>) -> ApiError {
    let path = error.path().to_string();
    let cause = error.inner().to_string();
    // Unknown enum values, in the wording of the API description's checks.
    let known = cause.split_once(": it should be one of [");
    if let Some((_, known)) = known.filter(|_| path != ".") {
        return ApiError::parameter(&path, "body", format_args!("should be one of [{known}"));
    }
    if cause.starts_with("UUID parsing failed") {
        return ApiError::parameter(&path, "body", "must be of type uuid");
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
        return ApiError::parameter(&field, "body", "is required");
    }
    match path.as_str() {
        "." | "?" => unparsable(name, &cause),
        path => unparsable(name, &format!("{path}: {cause}")),
    }
}

fn unparsable(name: &str, cause: &str) -> ApiError {
    ApiError::Request(format!(
        "parsing {name} body from \"\" failed, because {cause}"
    ))
}

/// Content negotiation: refuses a request whose `Accept` excludes the operation's media type.
pub(crate) fn check_accept(parts: &HeaderMap, content: ResponseContent) -> Result<(), ApiError> {
    let offered = content.media_type();
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
        matches!(essence.as_str(), "" | "*" | "*/*" | "application/*" | JSON) || essence == offered
    });
    if fits {
        return Ok(());
    }
    Err(ApiError::Request(format!(
        "unsupported media type requested, only [{offered}] are available"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::cluster::ClusterCreateParams;

    fn message(body: &str) -> String {
        let body: JsonBody = JsonBody(Bytes::copy_from_slice(body.as_bytes()));
        body.parse::<ClusterCreateParams>("new-cluster-params")
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn body_errors_name_the_field() {
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
    fn null_members_are_absent() {
        let body = r#"{"name":"x","openshift_version":"4.18","pull_secret":"{}","base_dns_domain":null,
            "machine_networks":[{"cidr":null}],"platform":{"type":"none","external":null}}"#;
        let params: ClusterCreateParams =
            JsonBody::<BODY_LIMIT>(Bytes::from_static(body.as_bytes()))
                .parse("x")
                .unwrap();
        assert_eq!(params.base_dns_domain, "");
    }

    #[test]
    fn only_hyphenated_ids_are_accepted() {
        assert!(parse_uuid("cluster_id", "path", "2b9b1b1e-7f0e-4f0e-8f0e-2b9b1b1e7f0e").is_ok());
        let error = parse_uuid("cluster_id", "path", "x").unwrap_err();
        assert_eq!(
            error.to_string(),
            "cluster_id in path must be of type uuid: \"x\""
        );
        assert!(parse_uuid("cluster_id", "path", "2b9b1b1e7f0e4f0e8f0e2b9b1b1e7f0e").is_err());
    }
}
