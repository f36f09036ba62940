//! Faults of the wire: a server that speaks S3 answers one of its requests with an error, or with half an answer.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock, Mutex};

use axum::http::header::CONTENT_LENGTH;
use bytes::Bytes;
use futures_util::{TryStreamExt as _, stream};
use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use percent_encoding::percent_decode_str;
use regex::Regex;
use s3s::service::S3Service;
use s3s::{Body, HttpError, HttpRequest, HttpResponse};

use super::bucket::S3Bucket;

/// Made by the client, or by the server.
static MADE_UP: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}\b|\buploadId=\d+").unwrap()
});
/// The listing of a shard, one of 256.
static SHARD: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("[?&]prefix=([^&]*/)([0-9a-f]{2})/(?:&|$)").unwrap());

/// The fate of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum S3Fault {
    /// 500, and nothing was done.
    InternalError,
    /// 503, and nothing was done.
    SlowDown,
    /// It was done, and the connection is cut within the answer; before it where the answer is a head alone.
    Cut,
}

/// All faults.
pub const FAULTS: [S3Fault; 3] = [S3Fault::InternalError, S3Fault::SlowDown, S3Fault::Cut];

/// Which requests of each operation meet a fault. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Wire(Arc<Mutex<Plan>>);

#[derive(Debug, Default)]
struct Plan {
    faults: Option<Faults>,
    /// Requests of this operation.
    known: HashSet<String>,
    met: Vec<String>,
}

/// Of the requests of an operation, counted from nought: `first`, and each that comes `distance` further.
#[derive(Debug, Clone, Copy)]
pub struct Faults {
    /// The fault.
    pub fault: S3Fault,
    /// The first one.
    pub first: usize,
    /// Distance of the next ones.
    pub distance: usize,
}

impl Wire {
    /// Requests meet faults from now on.
    ///
    /// # Panics
    /// A test failed meanwhile.
    pub fn arm(&self, faults: Faults) {
        self.0.lock().unwrap().faults = Some(faults);
    }

    /// Ends the faults; returns the requests that met one.
    ///
    /// # Panics
    /// A test failed meanwhile.
    pub fn disarm(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap()).met
    }

    /// The next request is the first of another operation.
    ///
    /// # Panics
    /// A test failed meanwhile.
    pub fn begin(&self) {
        self.0.lock().unwrap().known.clear();
    }

    /// A request fails once: retries are not counted again, nor are those of an operation that begins again.
    fn next<B>(&self, bucket: &S3Bucket, request: &Request<B>) -> Option<S3Fault> {
        let mut plan = self.0.lock().unwrap();
        let faults = plan.faults?;
        let name = name(bucket, request);
        let nth = plan.known.len();
        if !plan.known.insert(name.clone()) || nth % faults.distance != faults.first {
            return None;
        }
        plan.met.push(name);
        Some(faults.fault)
    }

    /// The answer to a request.
    pub(super) async fn answer(
        &self,
        service: &S3Service,
        bucket: &S3Bucket,
        request: Request<Incoming>,
    ) -> Result<HttpResponse, HttpError> {
        let fault = self.next(bucket, &request);
        let request = request.map(Body::from);
        match fault {
            None => service.call(request).await,
            Some(S3Fault::InternalError) => {
                refused(request, StatusCode::INTERNAL_SERVER_ERROR, "InternalError").await
            }
            Some(S3Fault::SlowDown) => {
                refused(request, StatusCode::SERVICE_UNAVAILABLE, "SlowDown").await
            }
            Some(S3Fault::Cut) => cut(service.call(request).await?).await,
        }
    }
}

/// The identity of a request: the same for every retry.
fn name<B>(bucket: &S3Bucket, request: &Request<B>) -> String {
    let uri = request.uri().to_string();
    let uri = percent_decode_str(&uri).decode_utf8_lossy();
    let name = MADE_UP.replace_all(&uri, "*").into_owned();
    let method = request.method();
    if method == Method::POST {
        // The objects that are removed are in the body.
        let content = request.headers().get("x-amz-content-sha256");
        return format!("{method} {name} {content:?}");
    }
    // Shards that hold nothing are alike.
    match SHARD.captures(&uri) {
        Some(shard) if bucket.holds_nothing(&format!("{}{}/", &shard[1], &shard[2])) => {
            format!("{method} {}**/", &shard[1])
        }
        _ => format!("{method} {name}"),
    }
}

/// Source: S3, error responses.
async fn refused(
    request: HttpRequest,
    status: StatusCode,
    code: &str,
) -> Result<HttpResponse, HttpError> {
    // A client that still sends would meet a reset in place of the answer.
    whole(request.into_body()).await?;
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{code}</Code><Message>once</Message></Error>"
    );
    let mut response = HttpResponse::new(Body::from(text));
    *response.status_mut() = status;
    Ok(response)
}

async fn cut(answer: HttpResponse) -> Result<HttpResponse, HttpError> {
    let (mut parts, body) = answer.into_parts();
    let content = whole(body).await?;
    if content.is_empty() {
        return Err(lost());
    }
    parts.headers.insert(CONTENT_LENGTH, content.len().into());
    let half = content.slice(..content.len() / 2);
    let pieces = stream::unfold(Some(half), async |half| {
        if let Some(half) = half {
            return Some((Ok(half), None));
        }
        // Written bytes are sent during the wait.
        tokio::task::yield_now().await;
        Some((Err(std::io::Error::other("cut")), None))
    });
    let body = axum::body::Body::from_stream(pieces);
    Ok(HttpResponse::from_parts(
        parts,
        Body::http_body_unsync(body),
    ))
}

fn lost() -> HttpError {
    HttpError::new("cut".into())
}

async fn whole(body: Body) -> Result<Bytes, HttpError> {
    let pieces: Vec<Bytes> = body.try_collect().await.map_err(HttpError::new)?;
    Ok(pieces.concat().into())
}
