//! `api.ExperimentalRegistry`: custom documents. Source: operator-registry, `pkg/server`.

use std::sync::Arc;

use catalog::api::ExperimentalListPackageCustomSchemasRequest;
use catalog::cache::{CatalogCache, Slices};
use tonic::Status;

use super::quote::quote;
use super::wire::GrpcCall;

/// Header in which clients acknowledge with `true` that the method is experimental.
const ACKNOWLEDGE: &str = "x-acknowledge-experimental";
/// Pattern of schemas and packages in queries.
const PATTERN: &str = "^[a-zA-Z0-9][a-zA-Z0-9._-]*$";

pub(super) fn list_package_custom_schemas(
    cache: &Arc<CatalogCache>,
    call: &GrpcCall<ExperimentalListPackageCustomSchemasRequest>,
) -> Result<Slices, Status> {
    // Source: without the header, opm sends an empty stream before any validation.
    let is_acknowledged = call
        .metadata
        .get(ACKNOWLEDGE)
        .is_some_and(|value| value == "true");
    if !is_acknowledged {
        return Ok(cache.nothing());
    }
    let ExperimentalListPackageCustomSchemasRequest {
        schema,
        package_name,
    } = &call.message;
    if schema.is_empty() {
        return Err(Status::invalid_argument("schema is required"));
    }
    check("schema", schema)?;
    if !package_name.is_empty() {
        check("packageName", package_name)?;
    }
    let found = cache.customs(schema, package_name);
    Ok(found.unwrap_or_else(|| cache.nothing()))
}

fn check(what: &str, name: &str) -> Result<(), Status> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric();
    let mut bytes = name.bytes();
    let is_good = bytes.next().is_some_and(is_plain)
        && bytes.all(|byte| is_plain(byte) || b"._-".contains(&byte));
    if is_good {
        return Ok(());
    }
    let name = quote(name);
    Err(Status::invalid_argument(format!(
        "invalid custom schema query: invalid {what} {name}: must match {PATTERN}"
    )))
}
