//! Handlers of declarations. Bodies are YAML: both files as documents of one text, or as parts of a form.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::multipart::{Multipart, MultipartError};
use axum::extract::{FromRequest, Request, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use declarations::{FileText, decode};
use model::Error;
use model::declaration::AppliedDeclaration;

use super::audit::Created;
use super::download::FileResponse;
use super::error::ApiError;
use super::extract::{InInfraEnv, check_media_type, media_type};
use super::query::Query;
use crate::app::declarations::{BODY_BYTES, Declarations};
use crate::auth::{Caller, OwnedResource};

/// Names of the form's parts.
const PARTS: [&str; 2] = ["install-config", "agent-config"];
const FORM: &str = "multipart/form-data";
/// Media types of the body: those of YAML that are in use, and JSON, which is YAML, too. Source: RFC 9512.
const MEDIA_TYPES: [&str; 6] = [
    "application/yaml",
    "application/x-yaml",
    "text/yaml",
    "text/x-yaml",
    "application/json",
    FORM,
];

/// Texts with both files, as YAML documents.
pub(crate) struct DeclaredFiles(Vec<FileText>);

impl<S: Send + Sync> FromRequest<S> for DeclaredFiles {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let media_type = media_type(request.headers());
        check_media_type(media_type.as_deref(), &MEDIA_TYPES)?;
        if media_type.as_deref() == Some(FORM) {
            return read_form(request, state).await.map(Self);
        }
        let bytes = Bytes::from_request(request, state).await.map_err(|error| {
            if error.status() == StatusCode::PAYLOAD_TOO_LARGE {
                return too_large();
            }
            ApiError::Request(format!("the body could not be read: {}", error.body_text()))
        })?;
        let name = "body".to_owned();
        let text = decode(&name, bytes.into())?;
        Ok(Self(vec![FileText { name, text }]))
    }
}

fn too_large() -> ApiError {
    ApiError::Domain(Error::TooLarge {
        what: "the body",
        limit: BODY_BYTES as u64,
    })
}

async fn read_form<S: Send + Sync>(request: Request, state: &S) -> Result<Vec<FileText>, ApiError> {
    let unreadable = |error: MultipartError| {
        if error.status() == StatusCode::PAYLOAD_TOO_LARGE {
            return too_large();
        }
        ApiError::Request(error.body_text())
    };
    let mut form = Multipart::from_request(request, state)
        .await
        .map_err(|error| ApiError::Request(error.body_text()))?;
    let mut documents = Vec::new();
    while let Some(part) = form.next_field().await.map_err(unreadable)? {
        let name = part.name().unwrap_or_default().to_owned();
        if !PARTS.contains(&name.trim_end_matches(".yaml")) {
            let problem = format!("should be one of [{}]", PARTS.join(" "));
            return Err(ApiError::parameter(&name, "formData", problem));
        }
        let bytes = part.bytes().await.map_err(unreadable)?;
        let name = format!("{}.yaml", name.trim_end_matches(".yaml"));
        let text = decode(&name, bytes.into())?;
        documents.push(FileText { name, text });
    }
    Ok(documents)
}

/// Applies the files to the cluster that they name; creates it, with its infra-env, if it does not exist.
pub(crate) async fn apply_new(
    State(declarations): State<Arc<Declarations>>,
    caller: Caller,
    query: Query,
    files: DeclaredFiles,
) -> Result<
    (
        StatusCode,
        Option<Extension<Created>>,
        Json<AppliedDeclaration>,
    ),
    ApiError,
> {
    let version = query.text("openshift_version").unwrap_or_default();
    let applied = declarations.apply(&caller, &files.0, version).await?;
    let status = if applied.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let cluster = applied.cluster_id.map(OwnedResource::Cluster);
    let subject = cluster.map(|cluster| Extension(Created(cluster)));
    Ok((status, subject, Json(applied)))
}

/// Applies the files to an infra-env and its cluster.
pub(crate) async fn apply(
    State(declarations): State<Arc<Declarations>>,
    caller: Caller,
    InInfraEnv(id): InInfraEnv,
    files: DeclaredFiles,
) -> Result<Json<AppliedDeclaration>, ApiError> {
    Ok(Json(
        declarations
            .apply_to_infra_env(&caller, id, &files.0)
            .await?,
    ))
}

/// Both files as one text of two documents.
pub(crate) async fn export(
    State(declarations): State<Arc<Declarations>>,
    caller: Caller,
    InInfraEnv(id): InInfraEnv,
) -> Result<FileResponse, ApiError> {
    let text = declarations.export(&caller, id).await?;
    Ok(FileResponse::bytes(
        format!("{id}-declaration.yaml"),
        text.into_bytes(),
    ))
}
