//! The description of this API: an OpenAPI document made of the tables of operations and records, and a page.
//!
//! Source: openshift/assisted-service serves its description at the same paths, as text.

mod page;
mod shapes;

use std::sync::LazyLock;

use axum::Router;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use model::schema::RecordSchemas;
use serde_json::{Map, Value, json};

use crate::http::dry_run::DRY_RUN;
use crate::operations::access::{CredentialPlace, Scheme};
use crate::operations::{BASE, OPERATIONS, Operation, ResponseContent};
use shapes::{OperationShape, ResponseShape, SHAPES};

/// Version of the document's format.
const OPENAPI: &str = "3.0.3";
const JSON: &str = ResponseContent::Json.media_type();
const YAML: &str = "application/yaml";
const BYTES: &str = ResponseContent::File.media_type();
const LINES: &str = ResponseContent::JsonLines.media_type();
const EVENTS: &str = ResponseContent::EventStream.media_type();
/// Name of the error record in the document.
const ERROR: &str = "Error";

/// Records and their members that are sent as null while they are unset.
const NULLABLE: &[(&str, &str)] = &[
    ("BundleCreateParams", "optional_operators"),
    ("Cluster", "deleted_at"),
    ("Host", "deleted_at"),
    ("Steps", "instructions"),
];

/// The document, indented.
static DOCUMENT: LazyLock<String> = LazyLock::new(|| format!("{:#}", document()));

/// Routes of the document and its page.
pub(crate) fn routes() -> Router {
    let document = get(|| async { text(&DOCUMENT) });
    Router::new()
        .route(&format!("{BASE}/openapi"), document.clone())
        .route(&format!("{BASE}/v2/openapi"), document)
        .route(
            "/docs",
            get(|headers: HeaderMap| async move { page::response(&headers) }),
        )
        .route(
            "/docs/style.css",
            get(|headers: HeaderMap| async move { page::style(&headers) }),
        )
        .route(
            "/docs/icon.svg",
            get(|headers: HeaderMap| async move { page::icon(&headers) }),
        )
}

fn text(document: &'static str) -> Response {
    (
        [(header::CONTENT_TYPE, "text/plain; charset=utf-8")],
        document,
    )
        .into_response()
}

/// The document.
fn document() -> Value {
    let mut schemas = RecordSchemas::default();
    let mut paths: Map<String, Value> = Map::new();
    for operation in OPERATIONS {
        let method = operation.method.to_ascii_lowercase();
        let described = describe(operation, shape(operation.id), &mut schemas);
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[method] = described;
    }
    schemas.0.insert(ERROR, error_record());
    for (record, member) in NULLABLE {
        if let Some(described) = schemas.0.get_mut(record) {
            described["properties"][member]["nullable"] = json!(true);
        }
    }
    json!({
        "openapi": OPENAPI,
        "info": { "title": "Installer API", "version": env!("CARGO_PKG_VERSION") },
        "servers": [{ "url": BASE }],
        "paths": paths,
        "components": { "schemas": schemas.0, "securitySchemes": security_schemes() },
    })
}

/// Kinds of credentials; none is checked with AUTH_TYPE=none.
fn security_schemes() -> Value {
    let described = Scheme::ALL.map(|scheme| {
        let (place, name) = match scheme.place() {
            CredentialPlace::Header(name) => ("header", name),
            CredentialPlace::Query(name) => ("query", name),
        };
        let described = json!({ "type": "apiKey", "in": place, "name": name });
        (scheme.name().to_owned(), described)
    });
    Value::Object(described.into_iter().collect())
}

fn shape(id: &str) -> Option<&'static OperationShape> {
    SHAPES.iter().find(|shape| shape.id == id)
}

fn describe(
    operation: &Operation,
    shape: Option<&OperationShape>,
    schemas: &mut RecordSchemas,
) -> Value {
    let security = operation.access.schemes();
    let security: Vec<Value> = security.map(|one| json!({ one.name(): [] })).collect();
    let mut described = json!({
        "operationId": operation.id,
        "security": security,
        "responses": { "default": failure() },
    });
    let in_path = parameters(operation.path).map(path_parameter);
    let in_query = shape.map_or(&[][..], |shape| shape.query).iter();
    let in_query = in_query.map(|name| query_parameter(name));
    let dry_run = operation.accepts_dry_run.then(dry_run_parameter);
    let parameters: Vec<Value> = in_path.chain(in_query).chain(dry_run).collect();
    if !parameters.is_empty() {
        described["parameters"] = json!(parameters);
    }
    let Some(shape) = shape else {
        return described;
    };
    if let Some(body) = shape.body {
        let content = json!({ JSON: { "schema": body(schemas) } });
        described["requestBody"] = json!({ "required": true, "content": content });
    }
    if shape.is_yaml {
        let schema = json!({
            "type": "string",
            "description": "install-config.yaml and agent-config.yaml as documents of one text, or as parts \
                            install-config and agent-config of a form",
        });
        let content = json!({ YAML: { "schema": schema } });
        described["requestBody"] = json!({ "required": true, "content": content });
    }
    let status = shape.status.to_string();
    described["responses"][status] = success(shape.response, schemas);
    if matches!(shape.response, ResponseShape::FileOrNothing) {
        described["responses"]["204"] = success(ResponseShape::Empty, schemas);
    }
    described
}

/// Names of the parameters of a path.
fn parameters(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn path_parameter(name: &str) -> Value {
    let is_id = ["cluster_id", "infra_env_id", "host_id"].contains(&name);
    let schema = if is_id {
        json!({ "type": "string", "format": "uuid" })
    } else {
        json!({ "type": "string" })
    };
    json!({ "name": name, "in": "path", "required": true, "schema": schema })
}

/// A parameter whose name ends with `!` is required.
fn query_parameter(name: &str) -> Value {
    let required = name.strip_suffix('!');
    json!({
        "name": required.unwrap_or(name), "in": "query", "required": required.is_some(),
        "schema": { "type": "string" },
    })
}

fn dry_run_parameter() -> Value {
    json!({
        "name": DRY_RUN,
        "in": "query",
        "required": false,
        "schema": { "type": "boolean", "default": false },
        "description": "Responds as ever, and writes nothing: no record, no event, no file.",
    })
}

fn success(response: ResponseShape, schemas: &mut RecordSchemas) -> Value {
    let description = "success";
    match response {
        ResponseShape::Empty => json!({ "description": description }),
        ResponseShape::File | ResponseShape::FileOrNothing => {
            let schema = json!({ "type": "string", "format": "binary" });
            json!({ "description": description, "content": { BYTES: { "schema": schema } } })
        }
        ResponseShape::EventStream => {
            let content = json!({ EVENTS: { "schema": { "type": "string" } } });
            json!({ "description": "one server-sent event for each event", "content": content })
        }
        ResponseShape::JsonLines(schema) => {
            let content = json!({ LINES: { "schema": schema(schemas) } });
            json!({ "description": "one JSON object per line", "content": content })
        }
        ResponseShape::Json(schema) => {
            let schema = schema(schemas);
            json!({ "description": description, "content": { JSON: { "schema": schema } } })
        }
    }
}

fn failure() -> Value {
    let schema = json!({ "$ref": format!("#/components/schemas/{ERROR}") });
    json!({ "description": "error", "content": { JSON: { "schema": schema } } })
}

/// Both shapes of errors: those of operations have a reason, those of malformed requests a message.
fn error_record() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "type": "object",
        "properties": { "code": {}, "href": text, "id": { "type": "integer" }, "kind": text, "reason": text, "message": text },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_operation_has_one_shape() {
        let operations: BTreeSet<&str> = OPERATIONS.iter().map(|one| one.id).collect();
        let shapes: BTreeSet<&str> = SHAPES.iter().map(|one| one.id).collect();
        assert_eq!(shapes, operations);
        assert_eq!(shapes.len(), SHAPES.len());
        for operation in OPERATIONS {
            let content = match shape(operation.id).unwrap().response {
                ResponseShape::Empty | ResponseShape::Json(_) => ResponseContent::Json,
                ResponseShape::File | ResponseShape::FileOrNothing => ResponseContent::File,
                ResponseShape::EventStream => ResponseContent::EventStream,
                ResponseShape::JsonLines(_) => ResponseContent::JsonLines,
            };
            assert_eq!(content, operation.content, "{}", operation.id);
        }
    }

    #[test]
    fn references_resolve() {
        fn check(value: &Value, known: &Value) {
            if let Some(path) = value["$ref"].as_str() {
                let name = path.rsplit('/').next().unwrap();
                assert!(known.get(name).is_some(), "{path}");
            }
            match value {
                Value::Object(members) => members.values().for_each(|one| check(one, known)),
                Value::Array(items) => items.iter().for_each(|one| check(one, known)),
                _ => {}
            }
        }
        let document = document();
        check(&document, &document["components"]["schemas"]);
    }

    #[test]
    fn members_that_are_sent_as_null_are_described() {
        let schemas = &document()["components"]["schemas"];
        for (record, member) in NULLABLE {
            let described = &schemas[record]["properties"][member];
            assert_eq!(described["nullable"], true);
            assert!(described["type"].is_string(), "{record}.{member}");
        }
        for (sent, member) in [
            (json!(model::cluster::Cluster::default()), "deleted_at"),
            (json!(model::host::Host::default()), "deleted_at"),
        ] {
            assert!(sent.get(member).is_some_and(Value::is_null), "{member}");
        }
    }

    #[test]
    fn operations_are_described() {
        let document = document();
        let create = &document["paths"]["/v2/clusters"]["post"];
        assert_eq!(create["operationId"], "v2RegisterCluster");
        let body = &create["requestBody"]["content"][JSON]["schema"]["$ref"];
        assert_eq!(body, "#/components/schemas/ClusterCreateParams");
        let created = &create["responses"]["201"]["content"][JSON]["schema"]["$ref"];
        assert_eq!(created, "#/components/schemas/Cluster");
        assert_eq!(create["parameters"][0]["name"], DRY_RUN);
        let read = &document["paths"]["/v2/clusters/{cluster_id}"]["get"]["parameters"];
        assert_eq!(read[0]["name"], "cluster_id");
        assert_eq!(read[1], query_parameter("exclude-hosts"));
        let status = &document["components"]["schemas"]["Cluster"]["properties"]["status"];
        assert!(
            status["enum"]
                .as_array()
                .unwrap()
                .contains(&json!("pending-for-input"))
        );
    }
}
