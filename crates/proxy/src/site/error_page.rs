//! Pages of errors for browsers; programs get JSON.

use std::path::PathBuf;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use maud::{DOCTYPE, html};

/// Longest error page of an operator. Units: bytes.
const MAX_PAGE: u64 = 256 * 1024;

/// Pages for errors of this server.
#[derive(Debug, Clone)]
pub(crate) struct ErrorPages {
    /// Folder with pages of an operator, as `503.html`.
    pub(crate) folder: Option<PathBuf>,
}

impl ErrorPages {
    /// `response` as a page, if the client accepts HTML; it says `message`.
    pub(crate) async fn page(
        &self,
        accept: Option<&HeaderValue>,
        message: &str,
        mut response: Response,
    ) -> Response {
        let no_cache = HeaderValue::from_static("no-store");
        response
            .headers_mut()
            .insert(header::CACHE_CONTROL, no_cache);
        let is_browser = accept
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.contains("text/html"));
        if !is_browser {
            return response;
        }
        let status = response.status();
        let text = match self.of_operator(status).await {
            Some(text) => text,
            None => page(status, message),
        };
        let headers = response.headers_mut();
        headers.remove(header::CONTENT_LENGTH);
        let html = HeaderValue::from_static("text/html; charset=utf-8");
        headers.insert(header::CONTENT_TYPE, html);
        *response.body_mut() = Body::from(text);
        response
    }

    async fn of_operator(&self, status: StatusCode) -> Option<String> {
        let path = self
            .folder
            .as_ref()?
            .join(format!("{}.html", status.as_u16()));
        let length = tokio::fs::metadata(&path).await.ok()?.len();
        if length > MAX_PAGE {
            tracing::warn!(path = %path.display(), length, "error page is longer than 256 KiB, the built-in one is sent");
            return None;
        }
        tokio::fs::read_to_string(&path).await.ok()
    }
}

fn page(status: StatusCode, message: &str) -> String {
    let reason = status.canonical_reason().unwrap_or_default();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (status.as_u16()) " " (reason) }
                style { "body{font:1rem/1.5 sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem}" }
            }
            body {
                h1 { (status.as_u16()) " " (reason) }
                p { (message) "." }
                p { "Reload this page in a moment. If it stays, look at the logs of that service." }
            }
        }
    };
    page.into_string()
}
