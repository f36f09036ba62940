//! The static file server: mirrored downloads, with listings of folders.
//!
//! Nothing outside of the root is served, and nothing but files and folders. The one invariant: a request never blocks a
//! thread of the runtime on the file system; a bounded number of others does that.

mod archives;
mod checksum;
mod coding;
mod error;
mod folder;
mod listing;
mod listing_cache;
mod local_time;
mod media_type;
mod page;
mod path;
mod root;
mod sort;
mod walk;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::stream;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use rustix::fs::Stat;
use service::conditional::Validator;
use service::content::{ContentPieces, Piece};
use service::limits::{Bound, Limit, Share};
use service::representation::Representation;
use service::server::{AdmittedRequest, ClientAddress, ClientQuota};

pub(crate) use archives::ReceivedByHttps;
use checksum::Checksums;
use error::FileError;
use folder::FolderReader;
use listing::{Listing, ListingRequest, PagePart};
use listing_cache::ListingCache;
use local_time::LocalTime;
pub(crate) use page::{STYLE as PAGE_STYLE, headers as page_headers};
use path::RequestPath;
use root::{OpenError, OpenedFile, StaticRoot};
use sort::SortOrder;

/// Replaces the listing of its folder. Source: specification, "Reverse proxy", rule 4.
const INDEX: &[u8] = b"mirror-index.html";
/// Folder of the mirrored downloads. Source: as above.
const DOWNLOADS: &[u8] = b"pub/downloads";
const ALLOWED: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");
/// Headers of a response with a file, at most.
const HEADERS: usize = 12;
const NO_SNIFFING: HeaderValue = HeaderValue::from_static("nosniff");

/// Settings of the static files.
#[derive(Debug, Clone)]
pub(crate) struct FilesSettings {
    /// The folder that is served; it may be mounted later.
    pub(crate) root: PathBuf,
    /// Time zone of listings, as in the variable TZ; empty for the machine's.
    pub(crate) time_zone: String,
}

/// Answers every path with the file or folder below the root.
#[derive(Debug)]
pub(crate) struct StaticFiles {
    root: StaticRoot,
    time: Arc<LocalTime>,
    checksums: Checksums,
    listings: ListingCache,
    /// Permits of large listings.
    large: ClientQuota,
}

/// Limits of the static files.
pub(crate) fn limits() -> Vec<Limit> {
    let entries = |count: usize| Bound::Count(count as u64, "entries");
    let busy = "503 with Retry-After";
    vec![
        Limit::fixed(
            "sorted listing",
            entries(listing::LARGE),
            "folder",
            "streamed unsorted",
        ),
        Limit::fixed(
            "large listings",
            Bound::Count(
                listing::LARGE_AT_ONCE as u64,
                "listings of more than 1000 entries",
            ),
            "server",
            "streamed unsorted",
        )
        .shared(Share::of(
            "client address",
            Bound::Count(listing::LARGE_OF_CLIENT as u64, "listings"),
            "streamed unsorted",
        )),
        Limit::fixed(
            "listings in memory",
            Bound::Bytes(listing_cache::CAPACITY as u64),
            "server",
            "read again, not once a second",
        )
        .unshared("derived, evicted"),
        Limit::fixed(
            "checksums computed",
            Bound::Count(checksum::HASHING as u64, "files"),
            "server",
            "waits",
        )
        .shared(Share::of(
            "client address",
            Bound::Count(1, "file"),
            "waits",
        )),
        Limit::fixed(
            "checksums waiting",
            Bound::Count(checksum::WAITING as u64, "files"),
            "server",
            busy,
        )
        .shared(Share::of(
            "client address",
            Bound::Count(checksum::WAITING_OF_CLIENT as u64, "files"),
            busy,
        )),
        Limit::fixed(
            "remembered checksums",
            Bound::Bytes(checksum::REMEMBERED as u64),
            "server",
            "computed again",
        )
        .unshared("derived, evicted"),
    ]
}

impl StaticFiles {
    /// The files below the root of `settings`.
    pub(crate) fn new(settings: &FilesSettings) -> Self {
        Self {
            root: StaticRoot::new(&settings.root),
            time: Arc::new(LocalTime::new(&settings.time_zone)),
            checksums: Checksums::new(),
            listings: ListingCache::new(),
            large: listing::large(),
        }
    }

    /// Answers a request, of any method and path.
    pub(crate) async fn answer(&self, admitted: AdmittedRequest) -> Response {
        let client = admitted.client;
        let (head, _) = admitted.request.into_parts();
        match head.method {
            Method::GET | Method::HEAD => self
                .get(&head, client)
                .await
                .unwrap_or_else(FileError::into_response),
            Method::OPTIONS => (StatusCode::NO_CONTENT, [(header::ALLOW, ALLOWED)]).into_response(),
            _ => {
                let text = "Static files can only be read.";
                let mut response = page::message(StatusCode::METHOD_NOT_ALLOWED, text);
                response.headers_mut().insert(header::ALLOW, ALLOWED);
                response
            }
        }
    }

    async fn get(&self, head: &Parts, client: ClientAddress) -> Result<Response, FileError> {
        let path = RequestPath::parse(head.uri.path())?;
        match self.root.open(path.relative()).await {
            // Boxed, so that the future of the most common request is small: it is moved several times.
            Ok(opened) if opened.is_folder() => {
                Box::pin(self.folder(head, client, path, opened)).await
            }
            Ok(_) if path.has_slash() => Err(FileError::NotFound),
            Ok(opened) => Ok(self.file(head, &path, opened).await),
            Err(OpenError::NotFound) if path.relative() == DOWNLOADS => Err(FileError::NoDownloads),
            Err(OpenError::NotFound) => Box::pin(self.checksum(head, client, &path)).await,
            Err(error) => Err(error.into()),
        }
    }

    async fn folder(
        &self,
        head: &Parts,
        client: ClientAddress,
        path: RequestPath,
        opened: OpenedFile,
    ) -> Result<Response, FileError> {
        if !path.has_slash() {
            return Ok(redirect(&path, head.uri.query()));
        }
        let index = path.child(INDEX);
        if let Ok(opened) = self.root.open(index.relative()).await
            && !opened.is_folder()
        {
            return Ok(self.file(head, &index, opened).await);
        }
        let mut response = Response::new(Body::empty());
        response.headers_mut().extend(page::headers());
        if head.method == Method::HEAD {
            return Ok(response);
        }
        let (order, began) = (SortOrder::parse(head.uri.query()), Instant::now());
        let origin = archives::origin(head);
        let key = ListingCache::key(path.relative(), &opened, order, origin.as_deref());
        if let Some(page) = self.listings.get(key, began) {
            *response.body_mut() = page.into();
            return Ok(response);
        }
        let path = Arc::new(path);
        let request = ListingRequest {
            path: Arc::clone(&path),
            order,
            time: Arc::clone(&self.time),
            now: service::clock::now().timestamp(),
            large: self.large.clone(),
            client,
            origin: origin.map(Arc::from),
        };
        let reader = FolderReader::new(opened, path, self.root.clone());
        let begun = root::run(move || Listing::begin(request, reader)).await?;
        let (first, rest) = begun.map_err(OpenError::from)?;
        *response.body_mut() = match rest {
            None => {
                self.listings.put(key, began, first.clone());
                first.into()
            }
            Some(rest) => page_body(first, rest),
        };
        Ok(response)
    }

    async fn file(&self, head: &Parts, path: &RequestPath, file: OpenedFile) -> Response {
        let name = path.name().unwrap_or_default();
        let mut headers = HeaderMap::with_capacity(HEADERS);
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, NO_SNIFFING);
        let mut sent = file;
        let mut suffix = "";
        if coding::is_compressible(name) {
            headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
            for coding in coding::accepted(&head.headers) {
                let sibling = path.sibling(&[name, coding.end.as_bytes()].concat());
                let Ok(compressed) = self.root.open(sibling.relative()).await else {
                    continue;
                };
                // An older one may be of other content.
                if !compressed.is_folder() && age(&compressed.stat) >= age(&sent.stat) {
                    let value = HeaderValue::from_static(coding.name);
                    headers.insert(header::CONTENT_ENCODING, value);
                    (sent, suffix) = (compressed, coding.end);
                    break;
                }
            }
        }
        let content_type = media_type::of(name);
        respond(head, sent, suffix, content_type, headers)
    }

    /// `FILE.sha256`, where there is only `FILE`.
    async fn checksum(
        &self,
        head: &Parts,
        client: ClientAddress,
        path: &RequestPath,
    ) -> Result<Response, FileError> {
        let name = path.name().unwrap_or_default();
        let end = page::CHECKSUM_END.as_bytes();
        let Some(name) = name.strip_suffix(end).filter(|name| !name.is_empty()) else {
            return Err(FileError::NotFound);
        };
        let file = self.root.open(path.sibling(name).relative()).await?;
        if file.is_folder() || path.has_slash() {
            return Err(FileError::NotFound);
        }
        let modified = modified(&file.stat);
        let sum = match self.checksums.known(&file) {
            Some(sum) => sum,
            // The length is known without the sum.
            None if head.method == Method::HEAD => {
                let length = checksum::line(&[0; 32], name).len();
                let headers = [
                    (header::CONTENT_LENGTH, HeaderValue::from(length)),
                    (header::CONTENT_TYPE, media_type::of(end)),
                ];
                return Ok((headers, Body::empty()).into_response());
            }
            None => self.checksums.of(file, client).await?,
        };
        let line = checksum::line(&sum, name);
        let tag = data_encoding::HEXLOWER.encode(&sum[..16]);
        let mut content = ContentPieces::new();
        content.push(Piece::Memory(Bytes::from(line)));
        let representation = Representation {
            content,
            content_type: media_type::of(end),
            validator: Validator::new(&tag, modified),
            boundary: tag,
            headers: HeaderMap::from_iter([(header::X_CONTENT_TYPE_OPTIONS, NO_SNIFFING)]),
        };
        Ok(representation.respond(head, ()))
    }
}

/// To the folder with its slash, on the host that the client knows: the URL is without one.
fn redirect(path: &RequestPath, query: Option<&str>) -> Response {
    let mut location = path.folder_url();
    if let Some(query) = query {
        location.push('?');
        location.push_str(query);
    }
    match HeaderValue::from_str(&location) {
        Ok(location) => (
            StatusCode::MOVED_PERMANENTLY,
            [(header::LOCATION, location)],
        )
            .into_response(),
        Err(_) => FileError::NotFound.into_response(),
    }
}

/// The rest of a page, read while the client receives it.
fn page_body(first: Bytes, rest: Listing) -> Body {
    Body::from_stream(stream::try_unfold(
        (Some(first), Some(rest)),
        |(first, rest)| async move {
            if let Some(first) = first {
                return Ok(Some((first, (None, rest))));
            }
            let Some(rest) = rest else {
                return Ok::<_, std::io::Error>(None);
            };
            let next: Result<rustix::io::Result<PagePart>, OpenError> =
                root::run(move || rest.next()).await;
            let (part, rest) = next??;
            Ok(Some((part, (None, rest))))
        },
    ))
}

fn respond(
    head: &Parts,
    file: OpenedFile,
    suffix: &str,
    content_type: HeaderValue,
    headers: HeaderMap,
) -> Response {
    let stat = &file.stat;
    let length = u64::try_from(stat.st_size).unwrap_or_default();
    // Equal for equal copies on several servers.
    let tag = format!(
        "{:x}.{:x}-{length:x}{suffix}",
        stat.st_mtime, stat.st_mtime_nsec
    );
    let validator = Validator::new(&tag, modified(stat));
    let mut content = ContentPieces::new();
    content.push(Piece::File {
        file: Arc::new(file.file),
        start: 0,
        length,
    });
    let representation = Representation {
        content,
        content_type,
        validator,
        boundary: tag,
        headers,
    };
    representation.respond(head, ())
}

fn age(stat: &Stat) -> (i64, u64) {
    (stat.st_mtime, stat.st_mtime_nsec)
}

fn modified(stat: &Stat) -> SystemTime {
    let seconds = u64::try_from(stat.st_mtime).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}
