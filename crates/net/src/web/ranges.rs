//! A file of a web server that is read by ranges, and that does not change meanwhile.
//!
//! Every range is requested with `If-Range`. The one invariant: all bytes are of the version of the file that
//! [`FileServer::file`] found; other content is an error.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use model::Error;
use reqwest::header::{
    CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_RANGE,
    LAST_MODIFIED, RANGE,
};
use reqwest::{Response, StatusCode, Url};

use super::file_server::FileServer;
use super::{FIRST_PAUSE, SERVER, broken, shown};

/// Attempts to resume without progress: with backoff, enough for a server to restart.
const RESUMES: u32 = 8;
/// Longest backoff.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
const NO_RANGES: &str = "the server answers a range request (RFC 9110) with the whole file: it has to support ranges, \
    as nginx, Apache and the static files of atoll do; or download the archives, and name their folder";
const NO_VERSION: &str = "the server sends neither a strong ETag nor Last-Modified, without which a change of the file \
    during the run is not noticed: download the archives, and name their folder";
const CHANGED: &str =
    "the file has changed on the server since the run began: run the command again";
const NO_CONTENT_RANGE: &str = "the answer to a range request has no valid Content-Range";

/// A version of a file of a web server.
#[derive(Debug, Clone)]
pub struct WebFile {
    server: FileServer,
    url: Url,
    /// Units: bytes.
    size: u64,
    version: Version,
}

/// The validator of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Version {
    ETag(HeaderValue),
    Modified(HeaderValue),
}

impl FileServer {
    /// Finds the current version of a file, whose bytes are read later.
    ///
    /// Errors: Invalid – the file is empty, or the server has no ranges or validators; others as [`Self::page`].
    pub async fn file(&self, url: &Url) -> Result<WebFile, Error> {
        let first = HeaderValue::from_static("bytes=0-0");
        let headers: HeaderMap = [(RANGE, first)].into_iter().collect();
        let response = self.get(url, &headers).await?;
        let headers = response.headers();
        let wrong = |reason: &str| Error::invalid(shown(url), reason);
        let size = match response.status() {
            StatusCode::PARTIAL_CONTENT => match content_range(headers) {
                Some((0, 0, size)) => size,
                _ => return Err(wrong(NO_CONTENT_RANGE)),
            },
            StatusCode::OK if headers.get(CONTENT_LENGTH).is_none_or(|it| it != "0") => {
                return Err(wrong(NO_RANGES));
            }
            _ => return Err(wrong("it is empty")),
        };
        let version = Version::of(headers).ok_or_else(|| wrong(NO_VERSION))?;
        Ok(WebFile {
            server: self.clone(),
            url: response.url().clone(),
            size,
            version,
        })
    }
}

impl WebFile {
    /// Its URL, after redirects.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Units: bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The `length` bytes from `offset`, to be read; fewer where the file ends before.
    pub fn range(&self, offset: u64, length: u64) -> WebRange {
        WebRange {
            at: offset.min(self.size),
            end: offset.saturating_add(length).min(self.size),
            file: self.clone(),
            response: None,
            failures: 0,
        }
    }

    /// The response with the bytes from `at` up to `end`, or with the first ones of them.
    async fn open(&self, at: u64, end: u64) -> Result<Response, Error> {
        let range = HeaderValue::from_str(&format!("bytes={at}-{}", end - 1))
            .map_err(|e| Error::internal("sending a request to a web server", e))?;
        let condition = self.version.value().clone();
        let headers = [(RANGE, range), (IF_RANGE, condition)]
            .into_iter()
            .collect();
        let response = self.server.get(&self.url, &headers).await?;
        let wrong = |reason: &str| Error::invalid(shown(&self.url), reason);
        if response.status() != StatusCode::PARTIAL_CONTENT
            || self.version.is_contradicted(response.headers())
        {
            return Err(wrong(CHANGED));
        }
        match content_range(response.headers()) {
            None => Err(wrong(NO_CONTENT_RANGE)),
            Some((.., size)) if size != self.size => Err(wrong(CHANGED)),
            Some((first, last, _)) if first == at && last < end => Ok(response),
            Some(_) => Err(wrong(
                "the server answers a range request with another range",
            )),
        }
    }
}

impl Version {
    /// The strongest validator of a response. A weak entity tag does not identify bytes.
    fn of(headers: &HeaderMap) -> Option<Self> {
        let tag = headers.get(ETAG);
        let tag = tag.filter(|it| it.as_bytes().starts_with(b"\""));
        let modified = || headers.get(LAST_MODIFIED).cloned().map(Self::Modified);
        tag.cloned().map(Self::ETag).or_else(modified)
    }

    fn value(&self) -> &HeaderValue {
        let (Self::ETag(value) | Self::Modified(value)) = self;
        value
    }

    /// Whether the headers are of another version, for servers that ignore `If-Range`. Source: RFC 9110, section 15.3.7,
    /// by which `Last-Modified` may be left out.
    fn is_contradicted(&self, headers: &HeaderMap) -> bool {
        let name: HeaderName = match self {
            Self::ETag(_) => ETAG,
            Self::Modified(_) => LAST_MODIFIED,
        };
        headers.get(name).is_some_and(|other| other != self.value())
    }
}

/// Bytes of a file, resumed after interruptions.
#[derive(Debug)]
pub struct WebRange {
    file: WebFile,
    /// Position of the next byte. Units: bytes.
    at: u64,
    /// Units: bytes.
    end: u64,
    response: Option<Response>,
    /// Failures since the last byte.
    failures: u32,
}

impl WebRange {
    /// The next bytes; none at the end.
    ///
    /// Errors: Invalid – the file has changed; Unavailable – the server is unreachable, or breaks off, in all attempts;
    /// others as [`FileServer::file`].
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        while self.at < self.end {
            let failure = match self.chunk().await {
                Ok(chunk) => {
                    self.at += chunk.len() as u64;
                    self.failures = 0;
                    return Ok(Some(chunk));
                }
                Err(failure @ Error::Unavailable { .. }) => failure,
                Err(error) => return Err(error),
            };
            self.response = None;
            self.failures += 1;
            if self.failures >= RESUMES {
                return Err(failure);
            }
            let pause = FIRST_PAUSE * 2_u32.pow(self.failures - 1);
            tokio::time::sleep(pause.min(LONGEST_PAUSE)).await;
        }
        self.response = None;
        Ok(None)
    }

    async fn chunk(&mut self) -> Result<Bytes, Error> {
        let (file, at) = (&self.file, self.at);
        let response = match &mut self.response {
            Some(response) => response,
            none => none.insert(file.open(at, self.end).await?),
        };
        let chunk = response.chunk().await.map_err(|e| broken(&file.url, e))?;
        let Some(chunk) = chunk.filter(|it| !it.is_empty()) else {
            let text = format!("{} ended after {at} bytes", shown(&file.url));
            return Err(Error::unavailable(SERVER, text));
        };
        if chunk.len() as u64 > self.end - at {
            let reason = "the server answers a range request with more bytes than the range has";
            return Err(Error::invalid(shown(&file.url), reason));
        }
        Ok(chunk)
    }

    /// The bytes as a stream.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, Error>> + Send {
        stream::try_unfold(self, |mut range| async move {
            Ok(range.next().await?.map(|chunk| (chunk, range)))
        })
    }
}

/// First and last position, and the size of the file.
fn content_range(headers: &HeaderMap) -> Option<(u64, u64, u64)> {
    let text = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    let (range, size) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last, size) = (first.parse().ok()?, last.parse().ok()?, size.parse().ok()?);
    (first <= last && last < size).then_some((first, last, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn only_known_ranges_are_read() {
        for (text, expected) in [
            ("bytes 0-0/12", Some((0, 0, 12))),
            ("bytes 5-11/12", Some((5, 11, 12))),
            ("bytes 5-12/12", None),
            ("bytes 6-5/12", None),
            ("bytes 0-0/*", None),
            ("bytes */12", None),
            ("bytes 0-0/99999999999999999999", None),
            ("items 0-0/12", None),
        ] {
            let found = content_range(&headers(&[(CONTENT_RANGE, text)]));
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn a_weak_entity_tag_is_no_version() {
        let modified = (LAST_MODIFIED, "Fri, 27 Nov 2026 10:00:00 GMT");
        let strong = Version::of(&headers(&[(ETAG, "\"a\""), modified.clone()])).unwrap();
        assert_eq!(strong.value(), "\"a\"");
        assert!(!strong.is_contradicted(&headers(std::slice::from_ref(&modified))));
        assert!(strong.is_contradicted(&headers(&[(ETAG, "\"b\"")])));
        let weak = Version::of(&headers(&[(ETAG, "W/\"a\""), modified.clone()])).unwrap();
        assert_eq!(weak.value(), modified.1);
        assert!(!weak.is_contradicted(&headers(&[(ETAG, "W/\"a\"")])));
        assert_eq!(Version::of(&headers(&[(ETAG, "W/\"a\"")])), None);
    }
}
