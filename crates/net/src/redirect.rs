//! Redirects. A login belongs to its origin (scheme, host, port): after a redirect to another origin, requests carry no
//! `Authorization` and no other sensitive header, and challenges are not answered.
//!
//! Source: CVE-2020-15157 (containerd answered the challenge of a server that a redirect had named).

use reqwest::header::{AUTHORIZATION, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Request, Response, StatusCode, Url};

/// Redirects of one request, within one origin and, counted separately, to other origins.
const LIMIT: usize = 10;

/// A response, and whether it comes from another origin.
#[derive(Debug)]
pub struct RedirectedResponse {
    /// The response of the last request.
    pub response: Response,
    /// Whether it comes from another origin than the one of the first request.
    pub is_foreign: bool,
}

/// Follows redirects within one origin only; the others are left to [`send`].
pub fn policy() -> Policy {
    Policy::custom(|attempt| {
        let stays = attempt
            .previous()
            .last()
            .is_some_and(|previous| previous.origin() == attempt.url().origin());
        match stays {
            false => attempt.stop(),
            true if attempt.previous().len() > LIMIT => attempt.error("too many redirects"),
            true => attempt.follow(),
        }
    })
}

/// Sends a request by a client with [`policy`], and follows redirects of reads to other origins without the login and
/// without headers that are marked as sensitive. Writes stay at their origin: the caller gets the redirect itself.
///
/// Errors: those of the client.
pub async fn send(
    http: &Client,
    mut request: Request,
) -> Result<RedirectedResponse, reqwest::Error> {
    let mut is_foreign = false;
    for _ in 0..LIMIT {
        let again = request.try_clone();
        let response = http.execute(request).await?;
        let Some(next) = again.and_then(|again| redirected(again, &response)) else {
            return Ok(RedirectedResponse {
                response,
                is_foreign,
            });
        };
        request = next;
        is_foreign = true;
    }
    let response = http.execute(request).await?;
    Ok(RedirectedResponse {
        response,
        is_foreign,
    })
}

/// The request after a redirect to another origin; `None` without such a redirect.
fn redirected(mut request: Request, response: &Response) -> Option<Request> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let is_redirect = matches!(
        response.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    if !(is_read && is_redirect) {
        return None;
    }
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    *request.url_mut() = target(response.url(), location)?;
    let headers = request.headers_mut();
    let secrets: Vec<_> = headers
        .iter()
        .filter(|(name, value)| value.is_sensitive() || *name == AUTHORIZATION)
        .map(|(name, _)| name.clone())
        .collect();
    for name in secrets {
        headers.remove(name);
    }
    Some(request)
}

/// The target of a redirect. A login in the URL would become an `Authorization` header: it is removed.
fn target(from: &Url, location: &str) -> Option<Url> {
    let mut url = from.join(location).ok()?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_lead_to_web_servers_and_carry_no_login() {
        let from = "https://a.example/v2/x".parse().unwrap();
        for (location, expected) in [
            ("https://b.example/y?s=1", Some("https://b.example/y?s=1")),
            ("//b.example/y", Some("https://b.example/y")),
            ("http://u:p@b.example/y", Some("http://b.example/y")),
            ("y", Some("https://a.example/v2/y")),
            ("ftp://b.example/y", None),
            ("file:///etc/passwd", None),
            ("https://", None),
        ] {
            let url = target(&from, location);
            assert_eq!(url.as_ref().map(Url::as_str), expected, "{location}");
        }
    }
}
