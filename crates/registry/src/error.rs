//! The error bodies of the protocol, and the one place where errors become statuses.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use blob_store::StoreError;
use oci::{Digest, Tag};
use serde_json::{Value, json};

/// Units: seconds. Retry-After of each 503 without a delay of its own.
const RETRY_AFTER: u64 = 5;

/// An error as clients see it: a status and a list of codes.
#[derive(Debug, Clone)]
pub(crate) struct RegistryError {
    status: StatusCode,
    items: Vec<Value>,
    /// For the log only.
    cause: Option<String>,
    /// Units: seconds.
    retry_after: Option<u64>,
}

impl RegistryError {
    fn new(status: StatusCode, code: &str, message: impl Into<String>, detail: &Value) -> Self {
        let message: String = message.into();
        let item = json!({ "code": code, "message": message, "detail": detail });
        Self {
            status,
            items: vec![item],
            cause: None,
            retry_after: None,
        }
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "UNAUTHORIZED",
            "authentication required",
            &Value::Null,
        )
    }

    /// The user has logged in, but has no such access.
    pub(crate) fn denied() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "DENIED",
            "requested access to the resource is denied",
            &Value::Null,
        )
    }

    /// A quota is exhausted.
    pub(crate) fn quota(repositories: &str, used: u64, limit: u64, wanted: u64) -> Self {
        let message = format!(
            "the quota of {repositories} is exhausted: {used} of {limit} bytes are used, {wanted} more are wanted"
        );
        let detail =
            json!({ "repositories": repositories, "limit": limit, "used": used, "wanted": wanted });
        Self::new(StatusCode::FORBIDDEN, "DENIED", message, &detail)
    }

    /// A tag stays where it is. Clients show the message, and try `DENIED` no second time.
    pub(super) fn immutable(tag: &Tag, at: &Digest) -> Self {
        let message = format!("tag {tag} is immutable: it stays at {at}; push under another tag");
        let detail = json!({ "tag": tag.as_str(), "digest": at });
        Self::new(StatusCode::CONFLICT, "DENIED", message, &detail)
    }

    /// Too many failed logins. Units: seconds.
    pub(crate) fn too_many_requests(retry_after: u64) -> Self {
        let message =
            format!("too many failed logins from your address; wait {retry_after} seconds");
        Self {
            retry_after: Some(retry_after),
            ..Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "TOOMANYREQUESTS",
                message,
                &Value::Null,
            )
        }
    }

    /// The upstream has it for others only, or not at all.
    pub(crate) fn upstream_refuses(cause: String) -> Self {
        Self::of_upstream(
            StatusCode::FORBIDDEN,
            "DENIED",
            "the upstream registry does not give that out",
            cause,
        )
    }

    /// The upstream wants to be left alone. Units: seconds.
    pub(crate) fn upstream_rests(retry_after: u64, cause: String) -> Self {
        Self {
            retry_after: Some(retry_after),
            ..Self::of_upstream(
                StatusCode::TOO_MANY_REQUESTS,
                "TOOMANYREQUESTS",
                "the upstream registry was asked too often",
                cause,
            )
        }
    }

    pub(crate) fn upstream_away(cause: String) -> Self {
        Self::of_upstream(
            StatusCode::SERVICE_UNAVAILABLE,
            "UNAVAILABLE",
            "the upstream registry cannot be reached, and there is no copy here",
            cause,
        )
    }

    /// The upstream sent other content than requested.
    pub(crate) fn upstream_is_wrong(cause: String) -> Self {
        Self::of_upstream(
            StatusCode::BAD_GATEWAY,
            "UNAVAILABLE",
            "the upstream registry sent something else",
            cause,
        )
    }

    fn of_upstream(status: StatusCode, code: &str, message: &str, cause: String) -> Self {
        Self {
            cause: Some(cause),
            ..Self::new(status, code, message, &Value::Null)
        }
    }

    pub(crate) fn unsupported(message: &str) -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "UNSUPPORTED",
            message,
            &Value::Null,
        )
    }

    /// The task that collects garbage panicked.
    pub(crate) fn collection_panicked() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "UNKNOWN",
            "the collection ended unexpectedly; the registry's log names the cause",
            &Value::Null,
        )
    }

    /// No route leads there.
    pub(super) fn no_route() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "NAME_UNKNOWN",
            "no such address in this registry",
            &Value::Null,
        )
    }

    pub(super) fn name(error: &model::Error) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "NAME_INVALID",
            error.to_string(),
            &Value::Null,
        )
    }

    pub(super) fn digest(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "DIGEST_INVALID",
            message,
            &Value::Null,
        )
    }

    pub(super) fn tag(error: &model::Error) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "TAG_INVALID",
            error.to_string(),
            &Value::Null,
        )
    }

    /// A malformed tag.
    pub(crate) fn manifest_unknown(target: impl std::fmt::Display) -> Self {
        let detail = json!(target.to_string());
        Self::new(
            StatusCode::NOT_FOUND,
            "MANIFEST_UNKNOWN",
            "manifest unknown",
            &detail,
        )
    }

    pub(super) fn upload_unknown() -> Self {
        StoreError::UnknownUpload.into()
    }

    pub(super) fn page(text: &str) -> Self {
        let message = "invalid number of results requested: n has to be 0 or more";
        Self::new(
            StatusCode::BAD_REQUEST,
            "PAGINATION_NUMBER_INVALID",
            message,
            &json!({ "n": text }),
        )
    }

    pub(super) fn too_many_tags(limit: usize) -> Self {
        let message =
            format!("more than {limit} tags for one manifest; push them in several requests");
        Self::new(
            StatusCode::URI_TOO_LONG,
            "TAG_INVALID",
            message,
            &Value::Null,
        )
    }

    /// A Content-Range that does not fit the upload.
    pub(super) fn range(message: &str) -> Self {
        Self::new(
            StatusCode::RANGE_NOT_SATISFIABLE,
            "RANGE_INVALID",
            message,
            &Value::Null,
        )
    }

    pub(super) fn size(message: &str) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "SIZE_INVALID",
            message,
            &Value::Null,
        )
    }

    /// The manifest is malformed or too large.
    pub(super) fn manifest(error: &model::Error) -> Self {
        let status = match error {
            model::Error::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            _ => StatusCode::BAD_REQUEST,
        };
        let code = match error {
            model::Error::Invalid { field, .. } if field == "signature" => "MANIFEST_UNVERIFIED",
            _ => "MANIFEST_INVALID",
        };
        Self::new(status, code, error.to_string(), &Value::Null)
    }

    /// The body with its status.
    pub(crate) fn answer(self) -> Response {
        let body = self.body();
        let is_unavailable = self.status == StatusCode::SERVICE_UNAVAILABLE;
        let retry_after = self
            .retry_after
            .or(is_unavailable.then_some(RETRY_AFTER))
            .map(|seconds| [(header::RETRY_AFTER, HeaderValue::from(seconds))]);
        (self.status, retry_after, Json(body)).into_response()
    }

    /// The message.
    pub(super) fn messages(&self) -> Vec<String> {
        let texts = self.items.iter().map(|item| item["message"].as_str());
        texts.flatten().map(str::to_owned).collect()
    }

    /// The body alone; server errors go into the log here.
    pub(super) fn body(&self) -> Value {
        let (status, body) = (self.status.as_u16(), json!({ "errors": self.items }));
        if self.status.is_server_error() {
            tracing::error!(status, cause = self.cause, %body, "answered an error");
        } else {
            tracing::debug!(status, cause = self.cause, %body, "refused");
        }
        body
    }
}

impl From<StoreError> for RegistryError {
    fn from(error: StoreError) -> Self {
        let text = error.to_string();
        let is_full = error.is_full();
        match error {
            StoreError::UnknownRepository(name) => {
                let detail = json!({ "name": name.as_str() });
                Self::new(StatusCode::NOT_FOUND, "NAME_UNKNOWN", "repository name not known to registry", &detail)
            }
            StoreError::UnknownBlob(digest) => {
                Self::new(StatusCode::NOT_FOUND, "BLOB_UNKNOWN", "blob unknown to registry", &json!(digest))
            }
            StoreError::InUse(digest) => {
                Self::new(StatusCode::CONFLICT, "DENIED", text, &json!(digest))
            }
            StoreError::Renewed => Self::new(StatusCode::CONFLICT, "DENIED", text, &Value::Null),
            StoreError::UnknownManifest(id) => Self::manifest_unknown(id),
            StoreError::UnknownUpload => {
                Self::new(StatusCode::NOT_FOUND, "BLOB_UPLOAD_UNKNOWN", "blob upload unknown to registry", &Value::Null)
            }
            StoreError::WrongDigest { claimed, actual } => {
                let message = "provided digest did not match uploaded content";
                let detail = json!({ "claimed": claimed, "actual": actual });
                Self::new(StatusCode::BAD_REQUEST, "DIGEST_INVALID", message, &detail)
            }
            StoreError::OutOfOrder { .. } => Self::range(&text),
            StoreError::Interrupted(cause) => Self {
                cause: Some(cause.to_string()),
                ..Self::new(StatusCode::BAD_REQUEST, "BLOB_UPLOAD_INVALID", text, &Value::Null)
            },
            StoreError::MissingContent(digests) => Self {
                status: StatusCode::BAD_REQUEST,
                items: digests
                    .iter()
                    .map(|digest| json!({ "code": "MANIFEST_BLOB_UNKNOWN", "message": "blob unknown to registry", "detail": digest }))
                    .collect(),
                cause: None,
                retry_after: None,
            },
            StoreError::Io { doing, source } => {
                let (status, message) = if is_full {
                    (
                        StatusCode::INSUFFICIENT_STORAGE,
                        "the registry's disk is full: delete images and collect garbage, or add space, and push again",
                    )
                } else {
                    (
                        StatusCode::INTERNAL_SERVER_ERROR,
                        "the registry's storage failed; the registry's log and /ready name the cause",
                    )
                };
                let cause = Some(format!("{doing}: {source}"));
                Self { cause, ..Self::new(status, "UNKNOWN", message, &Value::Null) }
            }
            StoreError::ReadOnly(why) => Self {
                cause: Some(why),
                ..Self::unsupported("the registry is read-only: its storage folder cannot be changed")
            },
            StoreError::Unavailable { doing, source } => {
                let message = "the registry's storage does not answer; try again";
                Self {
                    cause: Some(format!("{doing}: {}", model::error::chain(source.as_ref()))),
                    ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", message, &Value::Null)
                }
            }
            StoreError::Damaged { .. } => Self {
                cause: Some(text),
                ..Self::new(StatusCode::INTERNAL_SERVER_ERROR, "UNKNOWN", "the stored content is damaged", &Value::Null)
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(kind: std::io::ErrorKind) -> StoreError {
        StoreError::Io {
            doing: "writing /secret/path",
            source: kind.into(),
        }
    }

    fn check(table: Vec<(RegistryError, u16, &str)>) {
        for (error, status, code) in table {
            let shown = json!(error.items).to_string();
            assert!(
                error.items.iter().all(|item| item["code"] == code),
                "{shown}"
            );
            assert!(!shown.contains("/secret"), "{shown}");
            let answer = error.answer();
            assert_eq!(answer.status().as_u16(), status, "{shown}");
            let has_delay = answer.headers().contains_key(header::RETRY_AFTER);
            assert_eq!(has_delay, [429, 503].contains(&status), "{shown}");
        }
    }

    #[test]
    fn each_error_of_the_store_has_its_status_and_code() {
        let digest = Digest::sha256(b"");
        let wrong = StoreError::WrongDigest {
            claimed: digest.clone(),
            actual: digest.clone(),
        };
        let damaged = StoreError::Damaged {
            what: "/secret".to_owned(),
            why: "x".to_owned(),
        };
        let unknown = StoreError::UnknownRepository("a".parse().unwrap());
        let missing = StoreError::MissingContent(vec![digest.clone(), digest.clone()]);
        let table = [
            (unknown, 404, "NAME_UNKNOWN"),
            (StoreError::InUse(digest.clone()), 409, "DENIED"),
            (StoreError::Renewed, 409, "DENIED"),
            (StoreError::UnknownBlob(digest), 404, "BLOB_UNKNOWN"),
            (
                StoreError::UnknownManifest("t".to_owned()),
                404,
                "MANIFEST_UNKNOWN",
            ),
            (StoreError::UnknownUpload, 404, "BLOB_UPLOAD_UNKNOWN"),
            (wrong, 400, "DIGEST_INVALID"),
            (StoreError::OutOfOrder { received: 1 }, 416, "RANGE_INVALID"),
            (
                StoreError::Interrupted("x".into()),
                400,
                "BLOB_UPLOAD_INVALID",
            ),
            (missing, 400, "MANIFEST_BLOB_UNKNOWN"),
            (io(std::io::ErrorKind::StorageFull), 507, "UNKNOWN"),
            (io(std::io::ErrorKind::Other), 500, "UNKNOWN"),
            (
                StoreError::Unavailable {
                    doing: "asking the bucket",
                    source: "/secret".into(),
                },
                503,
                "UNAVAILABLE",
            ),
            (damaged, 500, "UNKNOWN"),
        ];
        check(
            table
                .into_iter()
                .map(|(error, status, code)| (error.into(), status, code))
                .collect(),
        );
    }

    #[test]
    fn each_refusal_of_a_request_has_its_status_and_code() {
        let invalid = model::Error::invalid("a", "b");
        let (tag, digest) = ("t".parse().unwrap(), Digest::sha256(b""));
        let too_large = model::Error::TooLarge {
            what: "manifest",
            limit: 1,
        };
        check(vec![
            (RegistryError::unauthorized(), 401, "UNAUTHORIZED"),
            (RegistryError::denied(), 403, "DENIED"),
            (RegistryError::too_many_requests(1), 429, "TOOMANYREQUESTS"),
            (
                RegistryError::upstream_refuses("/secret".to_owned()),
                403,
                "DENIED",
            ),
            (
                RegistryError::upstream_rests(1, "/secret".to_owned()),
                429,
                "TOOMANYREQUESTS",
            ),
            (
                RegistryError::upstream_away("/secret".to_owned()),
                503,
                "UNAVAILABLE",
            ),
            (
                RegistryError::upstream_is_wrong("/secret".to_owned()),
                502,
                "UNAVAILABLE",
            ),
            (RegistryError::unsupported("x"), 405, "UNSUPPORTED"),
            (RegistryError::page("-1"), 400, "PAGINATION_NUMBER_INVALID"),
            (RegistryError::size("x"), 400, "SIZE_INVALID"),
            (RegistryError::range("x"), 416, "RANGE_INVALID"),
            (RegistryError::manifest(&too_large), 413, "MANIFEST_INVALID"),
            (RegistryError::manifest(&invalid), 400, "MANIFEST_INVALID"),
            (RegistryError::name(&invalid), 400, "NAME_INVALID"),
            (RegistryError::tag(&invalid), 400, "TAG_INVALID"),
            (RegistryError::quota("a", 1, 1, 1), 403, "DENIED"),
            (RegistryError::immutable(&tag, &digest), 409, "DENIED"),
            (RegistryError::too_many_tags(1), 414, "TAG_INVALID"),
            (RegistryError::no_route(), 404, "NAME_UNKNOWN"),
        ]);
    }
}
