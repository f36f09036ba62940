//! A readable page of the operations and records.

use std::sync::LazyLock;

use axum::http::HeaderMap;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Map, Value};
use service::page::{self, Site};

use crate::operations::BASE;

const SITE: Site = Site {
    name: "Installer API",
    root: "/docs/",
};

static PAGE: LazyLock<String> = LazyLock::new(|| render(&super::document()).into_string());

pub(super) fn response(request: &HeaderMap) -> Response {
    page::file(request, "text/html; charset=utf-8", PAGE.as_str())
}

pub(super) fn style(request: &HeaderMap) -> Response {
    page::file(request, "text/css", page::STYLE)
}

pub(super) fn icon(request: &HeaderMap) -> Response {
    page::file(request, "image/svg+xml", page::ICON)
}

fn render(document: &Value) -> Markup {
    let top = html! {
        header {
            h1 { "Installer API" }
            p { "Paths are below " code { (BASE) } ". " a href=(format!("{BASE}/openapi")) { "OpenAPI document" } }
        }
    };
    let main = html! {
        (page::section("Operations", &operations(document)))
        (page::section("Records", &records(document)))
    };
    page::framed(&SITE, "Operations", &top, &main)
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn operations(document: &Value) -> Markup {
    let mut rows = Vec::new();
    for (path, methods) in members(&document["paths"]) {
        for (method, operation) in members(methods) {
            rows.push(operation_row(path, method, operation));
        }
    }
    page::table(
        "Operations",
        &["Operation", "Request", "Response"],
        &rows,
        0,
    )
}

fn operation_row(path: &str, method: &str, operation: &Value) -> Markup {
    let id = operation["operationId"].as_str().unwrap_or_default();
    let query = operation["parameters"].as_array().into_iter().flatten();
    let query: Vec<&str> = query
        .filter(|parameter| parameter["in"] == "query")
        .filter_map(|parameter| parameter["name"].as_str())
        .collect();
    html! {
        td {
            code { (method.to_ascii_uppercase()) " " (path) }
            br;
            (id)
        }
        td {
            (content(&operation["requestBody"]))
            @if !query.is_empty() { br; "?" (query.join(" ")) }
        }
        td {
            @for (status, response) in members(&operation["responses"]) {
                @if status != "default" { (status) " " (content(response)) }
            }
        }
    }
}

/// The schema of a body or a response.
fn content(value: &Value) -> Markup {
    html! { @for (_, content) in members(&value["content"]) { (schema(&content["schema"])) } }
}

fn schema(schema: &Value) -> Markup {
    if let Some(name) = schema["$ref"]
        .as_str()
        .and_then(|path| path.rsplit('/').next())
    {
        return html! { a href={ "#" (name) } { (name) } };
    }
    match schema["type"].as_str() {
        Some("array") => html! { "list of " (self::schema(&schema["items"])) },
        Some("object") if schema["additionalProperties"].is_object() => {
            html! { "map of " (self::schema(&schema["additionalProperties"])) }
        }
        Some(kind) => html! { (schema["format"].as_str().unwrap_or(kind)) (closed_set(schema)) },
        None => html! { "any" },
    }
}

fn closed_set(schema: &Value) -> Markup {
    let values = schema["enum"].as_array().into_iter().flatten();
    let values: Vec<&str> = values.filter_map(Value::as_str).collect();
    html! { @if !values.is_empty() { ": " (values.join(", ")) } }
}

fn records(document: &Value) -> Markup {
    html! {
        @for (name, record) in members(&document["components"]["schemas"]) {
            h3 id=(name) { (name) }
            (page::table(name, &["Member", "Type"], &member_rows(record), 0))
        }
    }
}

fn member_rows(record: &Value) -> Vec<Markup> {
    let required = |name: &str| {
        let names = record["required"].as_array();
        names.is_some_and(|names| names.iter().any(|one| one == name))
    };
    members(&record["properties"])
        .map(|(name, member)| {
            html! {
                td { code { (name) } @if required(name) { " (required)" } }
                td { (schema(member)) }
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_operations_and_records() {
        let page = render(&super::super::document()).into_string();
        for part in [
            "<code>POST /v2/clusters</code>",
            "href=\"#ClusterCreateParams\"",
            "id=\"ClusterCreateParams\"",
            "<code>name</code> (required)",
        ] {
            assert!(page.contains(part), "{part}");
        }
    }
}
