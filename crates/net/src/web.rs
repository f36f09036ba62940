//! Files of web servers: graphs, signatures, archives of data. A returned file is complete and within its limit.

mod file_server;
mod ranges;

use std::io::SeekFrom;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT, HeaderValue, RANGE};
use reqwest::{Response, StatusCode, Url};
use tokio::fs::File;
use tokio::io::{AsyncSeekExt as _, AsyncWriteExt as _};

pub use file_server::{FileServer, WebPage};
pub use ranges::{WebFile, WebRange};

use crate::resolve::Resolver;
use crate::trust;
use model::Error;

/// Timeout of a connection: long enough for a busy server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Idle timeout of a response.
const READ_TIMEOUT: Duration = Duration::from_mins(1);
/// Attempts for one file.
const ATTEMPTS: u32 = 4;
/// Backoff after the first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The role of the other side in messages.
pub const SERVER: &str = "the web server";

/// A client of any number of web servers, by the proxies of the environment. Clones share connections.
#[derive(Debug, Clone)]
pub struct Web(reqwest::Client);

/// Destination of the bytes.
enum DownloadSink<'a> {
    Memory(&'a mut Vec<u8>),
    File(&'a mut File, &'a Path),
}

impl Web {
    /// A client that trusts the system's certificates and those in `ca_pem`.
    ///
    /// Errors: Invalid – `ca_pem` holds no certificate; Internal – the client cannot be built.
    pub fn new(ca_pem: Option<&[u8]>) -> Result<Self, Error> {
        let client = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .dns_resolver(Resolver::system())
            .tls_backend_preconfigured(trust::client_config(ca_pem, false)?)
            .build();
        client
            .map(Self)
            .map_err(|e| Error::internal("building the web client", e))
    }

    /// Downloads a small file of the media type `accepted`. Units: bytes, for `limit`.
    ///
    /// Errors: NotFound; TooLarge; Unavailable – unreachable after all attempts; Invalid – any other refusal.
    pub async fn get(&self, url: &Url, accepted: &str, limit: u64) -> Result<Bytes, Error> {
        let mut bytes = Vec::new();
        self.fetch(url, accepted, limit, &mut DownloadSink::Memory(&mut bytes))
            .await?;
        Ok(bytes.into())
    }

    /// Downloads a file to the new file `to`, without an fsync. Units: bytes, for `limit`.
    ///
    /// Errors: as [`Self::get`]; Internal – `to` cannot be written.
    pub async fn download(&self, url: &Url, to: &Path, limit: u64) -> Result<(), Error> {
        let mut file = File::create_new(to).await.map_err(|e| unwritable(to, e))?;
        self.fetch(url, "*/*", limit, &mut DownloadSink::File(&mut file, to))
            .await?;
        file.flush().await.map_err(|e| unwritable(to, e))
    }

    /// Size of a file. Units: bytes.
    ///
    /// Errors: as [`Self::get`]; Invalid – the response does not have it.
    pub async fn size(&self, url: &Url) -> Result<u64, Error> {
        // Some servers refuse HEAD for signed URLs: the body of a GET is dropped unread.
        let response = self.open(url, 0).await?;
        let size = response.content_length();
        size.ok_or_else(|| Error::invalid("url", format!("{} has no Content-Length", shown(url))))
    }

    /// The response with a file, or with its bytes after the first `received`; a server without ranges responds with 200
    /// and the whole file.
    ///
    /// Errors: NotFound; Unavailable – unreachable after all attempts; Invalid – any other refusal.
    pub async fn open(&self, url: &Url, received: u64) -> Result<Response, Error> {
        let mut failures = 0;
        loop {
            let opened = self.response(url, received).await;
            if !is_retried(&opened, &mut failures).await {
                return opened;
            }
        }
    }

    async fn response(&self, url: &Url, received: u64) -> Result<Response, Error> {
        let mut request = self.0.get(url.clone());
        if received > 0 {
            request = request.header(RANGE, format!("bytes={received}-"));
        }
        let response = request.send().await.map_err(|e| broken(url, e))?;
        match response.status() {
            StatusCode::PARTIAL_CONTENT if received > 0 => Ok(response),
            _ => check(url, &response).map(|()| response),
        }
    }

    async fn fetch(
        &self,
        url: &Url,
        accepted: &str,
        limit: u64,
        sink: &mut DownloadSink<'_>,
    ) -> Result<(), Error> {
        let mut failures = 0;
        loop {
            sink.restart().await?;
            let done = self.once(url, accepted, limit, sink).await;
            if !is_retried(&done, &mut failures).await {
                return done;
            }
        }
    }

    async fn once(
        &self,
        url: &Url,
        accepted: &str,
        limit: u64,
        sink: &mut DownloadSink<'_>,
    ) -> Result<(), Error> {
        let broken = |e| broken(url, e);
        let accepted = HeaderValue::from_str(accepted)
            .map_err(|e| Error::internal("sending a request to a web server", e))?;
        let request = self.0.get(url.clone()).header(ACCEPT, accepted);
        let mut response = request.send().await.map_err(broken)?;
        check(url, &response)?;
        let mut count = 0;
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            count += chunk.len() as u64;
            if count > limit {
                let what = "the response of a web server";
                return Err(Error::TooLarge { what, limit });
            }
            sink.write(&chunk).await?;
        }
        Ok(())
    }
}

impl DownloadSink<'_> {
    async fn restart(&mut self) -> Result<(), Error> {
        match self {
            Self::Memory(bytes) => bytes.clear(),
            Self::File(file, path) => {
                let emptied = async {
                    file.set_len(0).await?;
                    file.seek(SeekFrom::Start(0)).await
                };
                emptied.await.map_err(|e| unwritable(path, e))?;
            }
        }
        Ok(())
    }

    async fn write(&mut self, chunk: &[u8]) -> Result<(), Error> {
        match self {
            Self::Memory(bytes) => bytes.extend_from_slice(chunk),
            Self::File(file, path) => {
                let written = file.write_all(chunk).await;
                written.map_err(|e| unwritable(path, e))?;
            }
        }
        Ok(())
    }
}

/// Whether there is another attempt, after the backoff of a transient failure.
async fn is_retried<T>(attempt: &Result<T, Error>, failures: &mut u32) -> bool {
    if !matches!(attempt, Err(Error::Unavailable { .. })) || *failures + 1 >= ATTEMPTS {
        return false;
    }
    tokio::time::sleep(FIRST_PAUSE * 2_u32.pow(*failures)).await;
    *failures += 1;
    true
}

/// The error of a connection that broke off.
pub fn broken(url: &Url, error: reqwest::Error) -> Error {
    let cause = model::error::chain(&error.without_url());
    Error::unavailable(SERVER, format!("{}: {cause}", shown(url)))
}

fn check(url: &Url, response: &Response) -> Result<(), Error> {
    let status = response.status();
    let said = format!("{} answered {status}", shown(url));
    match status {
        StatusCode::OK => Ok(()),
        StatusCode::NOT_FOUND => Err(Error::not_found("file", shown(url))),
        status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
            Err(Error::unavailable(SERVER, said))
        }
        _ => Err(Error::invalid("url", said)),
    }
}

/// A URL for messages, without user, password, query, and tokens in its path.
pub fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // Fails for URLs that cannot have a user.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    crate::masks::masked(url.as_str()).into_owned()
}

fn unwritable(path: &Path, error: std::io::Error) -> Error {
    Error::internal(format!("writing {}", path.display()), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_no_credentials() {
        let url = "https://user:secret@a.example/graph?token=secret#x";
        assert_eq!(shown(&url.parse().unwrap()), "https://a.example/graph");
        let url = "http://i/bytoken/secret/full.iso".parse().unwrap();
        assert_eq!(shown(&url), "http://i/bytoken/[hidden]/full.iso");
    }
}
