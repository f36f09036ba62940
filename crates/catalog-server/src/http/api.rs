//! The query API of catalogd: documents of a catalog as JSON lines.
//!
//! Source: operator-controller, internal/catalogd/server.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Json, Router};
use bytes::{Bytes, BytesMut};
use catalog::cache::{BuildReport, ByteRange, CatalogCache, Damaged};
use futures_util::stream;
use serde::Serialize;
use service::conditional::Validator;
use service::range::{RangeRequest, content_range};
use tower_http::compression::CompressionLayer;

use super::app::{HttpApp, HttpError};
use crate::settings::check_name;

const JSON_LINES: &str = "application/jsonl";
/// Write size: short documents are coalesced up to it. Units: bytes.
const PIECE_BYTES: usize = 64 * 1024;

pub(super) fn routes() -> Router<HttpApp> {
    // Compresses these routes only: gRPC has its own compression.
    Router::new()
        .route("/catalogs", get(list))
        .route("/catalogs/{catalog}/api/v1/all", get(all))
        .route("/catalogs/{catalog}/api/v1/metas", get(metas))
        .layer(middleware::from_fn(
            service::server::count_before_compression,
        ))
        .layer(CompressionLayer::new().gzip(true))
        .layer(middleware::from_fn(conditional))
}

/// Conditional requests, evaluated on the final response: a compressed one has a weak entity tag.
async fn conditional(request: Request, next: Next) -> Response {
    let conditions = request.headers().clone();
    let mut response = next.run(request).await;
    let Some(mut version) = response.extensions_mut().remove::<Validator>() else {
        return response;
    };
    if response.headers().contains_key(header::CONTENT_ENCODING) {
        version = version.weak();
    }
    if let Some(status) = version.precondition(&conditions) {
        response = status.into_response();
    }
    let headers = response.headers_mut();
    headers.extend(version.headers());
    let chosen_by = HeaderValue::from_static("accept-encoding");
    headers.insert(header::VARY, chosen_by);
    response
}

/// A catalog in the list of all, which catalogd has as resources of Kubernetes.
#[derive(Debug, Serialize)]
struct CatalogEntry<'a> {
    name: &'a str,
    source: &'a str,
    /// Whether it is loaded.
    is_ready: bool,
    /// Packages that are not served since they break rules.
    left_out: Vec<String>,
}

async fn list(State(app): State<HttpApp>) -> Response {
    let entries = app.0.catalogs.iter().map(|listed| {
        let cache = listed.catalog.current();
        let report = cache.as_ref().map(|cache| cache.report());
        let left_out = report.map(BuildReport::not_served).unwrap_or_default();
        CatalogEntry {
            name: &listed.name,
            source: &listed.source,
            is_ready: cache.is_some(),
            left_out: left_out.into_keys().map(str::to_owned).collect(),
        }
    });
    Json(entries.collect::<Vec<_>>()).into_response()
}

async fn all(
    State(app): State<HttpApp>,
    Path(catalog): Path<String>,
    request: Request,
) -> Response {
    let answered = found(&app, &catalog).map(|cache| whole(&cache, &request));
    answered.unwrap_or_else(|refusal| refuse(&refusal))
}

async fn metas(
    State(app): State<HttpApp>,
    Path(catalog): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = MetasQuery::parse(query.as_deref().unwrap_or_default());
    let answered = query.and_then(|query| Ok((query, found(&app, &catalog)?)));
    match answered {
        Ok((query, cache)) => fitting(&cache, &query),
        Err(refusal) => refuse(&refusal),
    }
}

fn found(app: &HttpApp, catalog: &str) -> Result<Arc<CatalogCache>, HttpError> {
    check_name(catalog).map_err(HttpError::BadRequest)?;
    app.cache(catalog)
}

/// Query parameters of `metas`.
#[derive(Debug, Default, PartialEq, Eq)]
struct MetasQuery {
    schema: Option<String>,
    package: Option<String>,
    name: Option<String>,
}

impl MetasQuery {
    /// Errors: an unknown parameter.
    fn parse(text: &str) -> Result<Self, HttpError> {
        let mut query = Self::default();
        for (name, value) in url::form_urlencoded::parse(text.as_bytes()) {
            let place = match &*name {
                "schema" => &mut query.schema,
                "package" => &mut query.package,
                "name" => &mut query.name,
                _ => {
                    let reason = format!(
                        "unknown parameter {name:?}: supported are schema, package and name"
                    );
                    return Err(HttpError::BadRequest(reason));
                }
            };
            // Source: catalogd takes the first of repeated parameters and ignores empty ones.
            if place.is_none() {
                *place = Some(value.into_owned());
            }
        }
        for place in [&mut query.schema, &mut query.package, &mut query.name] {
            place.take_if(|value| value.is_empty());
        }
        Ok(query)
    }

    fn fits(&self, line: &catalog::cache::CachedDocument<'_>) -> bool {
        [
            (&self.schema, line.schema),
            (&self.package, line.package),
            (&self.name, line.name),
        ]
        .iter()
        .all(|(wanted, is)| wanted.as_ref().is_none_or(|wanted| wanted == is))
    }
}

/// The whole catalog, or a range of it.
fn whole(cache: &Arc<CatalogCache>, request: &Request) -> Response {
    let json = cache.json();
    let size = json.length();
    let is_wanted =
        request.method() == Method::GET && version(cache).is_range_wanted(request.headers());
    let range = request.headers().get(header::RANGE);
    let range = range.filter(|_| is_wanted);
    let range = range.and_then(|value| value.to_str().ok());
    let (status, part) = match RangeRequest::parse(range, size) {
        RangeRequest::Full => (StatusCode::OK, 0..size),
        RangeRequest::Partial(part) => (StatusCode::PARTIAL_CONTENT, part),
        RangeRequest::NotSatisfiable => {
            let unsatisfied = [(header::CONTENT_RANGE, content_range(None, size))];
            let version = Extension(version(cache));
            return (StatusCode::RANGE_NOT_SATISFIABLE, unsatisfied, version).into_response();
        }
    };
    let length = part.end - part.start;
    let mut response = answer(cache, pieces(cache.slices(json.part(part.start, length))));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, length.into());
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if status == StatusCode::PARTIAL_CONTENT {
        let range = HeaderValue::try_from(content_range(Some(&part), size));
        headers.extend(range.map(|range| (header::CONTENT_RANGE, range)));
    }
    response
}

/// Documents that match the query.
fn fitting(cache: &Arc<CatalogCache>, query: &MetasQuery) -> Response {
    let lines = cache.lines().filter(|line| query.fits(line));
    let spans: Vec<ByteRange> = lines.map(|line| line.json).collect();
    let from = Arc::clone(cache);
    let lines = spans.into_iter().flat_map(move |span| {
        let newline = std::iter::once(Ok(Bytes::from_static(b"\n")));
        from.slices(span).chain(newline)
    });
    answer(cache, pieces(JoinedPieces(lines)))
}

/// Coalesces short pieces: each costs the connection a write.
struct JoinedPieces<I>(I);

impl<I: Iterator<Item = Result<Bytes, Damaged>>> Iterator for JoinedPieces<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<Self::Item> {
        let mut gathered = BytesMut::new();
        while gathered.len() < PIECE_BYTES {
            match self.0.next() {
                Some(Ok(piece)) if gathered.is_empty() && piece.len() >= PIECE_BYTES => {
                    return Some(Ok(piece));
                }
                Some(Ok(piece)) => gathered.extend_from_slice(&piece),
                Some(Err(damaged)) => return Some(Err(damaged)),
                None => break,
            }
        }
        (!gathered.is_empty()).then(|| Ok(gathered.freeze()))
    }
}

fn answer(cache: &CatalogCache, documents: Body) -> Response {
    let kind = [(header::CONTENT_TYPE, JSON_LINES)];
    (kind, Extension(version(cache)), documents).into_response()
}

fn pieces(pieces: impl Iterator<Item = Result<Bytes, Damaged>> + Send + 'static) -> Body {
    Body::from_stream(stream::iter(pieces))
}

/// Entity tag and modification time; change with each reload.
fn version(cache: &CatalogCache) -> Validator {
    Validator::new(&cache.key().to_string(), cache.modified())
}

/// Plain-text error. Source: catalogd.
fn refuse(refusal: &HttpError) -> Response {
    let status = refusal.status();
    let text = format!("{status}\n{refusal}\n");
    (status, refusal.retry_after(), text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_parameters_are_refused() {
        let query = MetasQuery::parse("schema=olm.package&name=a%2Bb&package=").unwrap();
        let expected = MetasQuery {
            schema: Some("olm.package".to_owned()),
            package: None,
            name: Some("a+b".to_owned()),
        };
        assert_eq!(query, expected);
        assert_eq!(MetasQuery::parse("").unwrap(), MetasQuery::default());
        assert_eq!(
            MetasQuery::parse("name=a&name=b").unwrap().name.unwrap(),
            "a"
        );
        for wrong in ["x=1", "Schema=a", "schema=a&y"] {
            let refused = MetasQuery::parse(wrong);
            assert!(matches!(refused, Err(HttpError::BadRequest(_))), "{wrong}");
        }
    }

    #[test]
    fn pieces_are_coalesced_and_errors_returned() {
        let long = Bytes::from(vec![b'x'; PIECE_BYTES]);
        let short = || Ok(Bytes::from_static(b"ab"));
        let pieces = vec![
            short(),
            short(),
            Ok(long.clone()),
            Ok(long),
            Err(Damaged),
            short(),
        ];
        let mut gathered = JoinedPieces(pieces.into_iter());
        let lengths: Vec<_> = gathered
            .by_ref()
            .map_while(Result::ok)
            .map(|piece| piece.len())
            .collect();
        assert_eq!(lengths, [4 + PIECE_BYTES, PIECE_BYTES]);
        assert_eq!(gathered.next().unwrap().unwrap(), "ab");
        assert!(gathered.next().is_none());
    }
}
