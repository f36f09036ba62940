//! A bucket in memory: with short pages, with reordered requests, or unreachable.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::memory::InMemory;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, Extensions, GetOptions, GetResult, ListResult, MultipartId,
    MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result,
};
use tokio::sync::Notify;

#[derive(Debug)]
pub(crate) struct Memory {
    objects: Arc<InMemory>,
    /// Limit of names in a page.
    page: usize,
    pub(crate) is_down: AtomicBool,
    /// Number of listings of marks.
    pub(crate) looks: AtomicUsize,
    hold: Mutex<Option<Arc<Hold>>>,
    requests: AtomicUsize,
    fault: Mutex<Option<Fault>>,
    /// The request that met the fault.
    pub(crate) met: Mutex<Option<String>>,
}

/// A request that fails once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Number of the request, from zero.
    pub(crate) request: usize,
    /// Whether it has its effect, and only its response is lost.
    pub(crate) is_done: bool,
}

/// Delays the next removal of an object whose key contains `part`.
#[derive(Debug)]
pub(crate) struct Hold {
    part: &'static str,
    pub(crate) reached: Notify,
    pub(crate) go: Notify,
}

impl Memory {
    pub(crate) fn new(page: usize) -> Arc<Self> {
        Arc::new(Self {
            objects: Arc::default(),
            page,
            is_down: AtomicBool::new(false),
            looks: AtomicUsize::new(0),
            hold: Mutex::default(),
            requests: AtomicUsize::new(0),
            fault: Mutex::default(),
            met: Mutex::default(),
        })
    }

    /// A bucket with one fault, or none.
    pub(crate) fn with_fault(fault: Option<Fault>) -> Arc<Self> {
        let memory = Self::new(1000);
        *memory.fault.lock().unwrap() = fault;
        memory
    }

    /// Ends the fault.
    pub(crate) fn heal(&self) {
        *self.fault.lock().unwrap() = None;
    }

    /// Number of requests.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Numbers a request.
    fn begin(&self, what: &str, key: &str) -> Result<usize> {
        let request = self.requests.fetch_add(1, Ordering::Relaxed);
        let fault = *self.fault.lock().unwrap();
        let is_met = fault.is_some_and(|it| it.request == request);
        if is_met {
            *self.met.lock().unwrap() = Some(format!("{what} {key}"));
        }
        let fault = Fault {
            request,
            is_done: false,
        };
        self.unless(fault).map(|()| request)
    }

    /// Ends a request.
    fn end<T>(&self, request: usize, answer: Result<T>) -> Result<T> {
        let answer = answer.map_err(as_s3);
        let fault = Fault {
            request,
            is_done: true,
        };
        self.unless(fault).and(answer)
    }

    fn unless(&self, fault: Fault) -> Result<()> {
        if *self.fault.lock().unwrap() != Some(fault) {
            return Ok(());
        }
        Err(Error::Generic {
            store: "memory",
            source: format!("{fault:?}").into(),
        })
    }

    pub(crate) fn hold(&self, part: &'static str) -> Arc<Hold> {
        let hold = Arc::new(Hold {
            part,
            reached: Notify::new(),
            go: Notify::new(),
        });
        *self.hold.lock().unwrap() = Some(Arc::clone(&hold));
        hold
    }

    pub(crate) async fn keys(&self) -> Vec<String> {
        let listed = self.objects.list(None);
        let keys = listed.map_ok(|meta| meta.location.to_string());
        keys.try_collect().await.unwrap()
    }

    /// Passes a request on.
    async fn pass(&self) -> Result<()> {
        for _ in 0..uuid::Uuid::new_v4().as_bytes()[0] % 4 {
            tokio::task::yield_now().await;
        }
        if self.is_down.load(Ordering::Relaxed) {
            return Err(Error::Generic {
                store: "memory",
                source: "out of reach".into(),
            });
        }
        Ok(())
    }
}

/// The error of parts that are completed or aborted. Source: S3, NoSuchUpload.
fn as_s3(error: Error) -> Error {
    if !error.to_string().contains("MultipartUpload not found") {
        return error;
    }
    let path = String::new();
    Error::NotFound {
        path,
        source: error.to_string().into(),
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("memory")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Memory {
    async fn put_opts(
        &self,
        key: &Path,
        put: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let request = self.begin("put", key.as_ref())?;
        self.pass().await?;
        let result = self.objects.put_opts(key, put, options).await;
        self.pass().await.and(self.end(request, result))
    }

    async fn put_multipart_opts(
        &self,
        key: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.objects.put_multipart_opts(key, options).await
    }

    async fn get_opts(&self, key: &Path, options: GetOptions) -> Result<GetResult> {
        let request = self.begin("get", key.as_ref())?;
        self.pass().await?;
        let answer = self.objects.get_opts(key, options).await;
        self.end(request, answer)
    }

    async fn get_ranges(&self, key: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.objects.get_ranges(key, ranges).await
    }

    fn delete_stream(
        &self,
        keys: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        if self.is_down.load(Ordering::Relaxed) {
            let source = "out of reach".into();
            let error = Error::Generic {
                store: "memory",
                source,
            };
            return futures_util::stream::iter([Err(error)]).boxed();
        }
        let failed = |error| futures_util::stream::iter([Err(error)]).boxed();
        let request = match self.begin("delete", "") {
            Ok(request) => request,
            Err(error) => return failed(error),
        };
        let lost = self.end(request, Ok(())).err();
        let objects = Arc::clone(&self.objects);
        let hold = self.hold.lock().unwrap().clone();
        let removal = async move {
            let keys: Vec<_> = keys.collect().await;
            let is_held = |hold: &Arc<Hold>| {
                let mut keys = keys.iter().flatten();
                keys.any(|key| key.as_ref().contains(hold.part))
            };
            if let Some(hold) = hold.filter(is_held) {
                hold.reached.notify_one();
                hold.go.notified().await;
            }
            let removed = objects.delete_stream(futures_util::stream::iter(keys).boxed());
            match lost {
                None => removed,
                Some(error) => {
                    let _: Vec<_> = removed.collect().await;
                    futures_util::stream::iter([Err(error)]).boxed()
                }
            }
        };
        futures_util::stream::once(removal).flatten().boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.objects.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let request = self.begin("copy", to.as_ref())?;
        self.pass().await?;
        let answer = self.objects.copy_opts(from, to, options).await;
        self.end(request, answer)
    }
}

#[async_trait::async_trait]
impl MultipartStore for Memory {
    async fn create_multipart(&self, key: &Path) -> Result<MultipartId> {
        let request = self.begin("create parts", key.as_ref())?;
        self.pass().await?;
        let answer = self.objects.create_multipart(key).await;
        self.end(request, answer)
    }

    async fn put_part(
        &self,
        key: &Path,
        id: &MultipartId,
        index: usize,
        part: PutPayload,
    ) -> Result<PartId> {
        let request = self.begin("put part", key.as_ref())?;
        self.pass().await?;
        let answer = self.objects.put_part(key, id, index, part).await;
        self.end(request, answer)
    }

    async fn complete_multipart(
        &self,
        key: &Path,
        id: &MultipartId,
        parts: Vec<PartId>,
    ) -> Result<PutResult> {
        let request = self.begin("complete parts", key.as_ref())?;
        self.pass().await?;
        let answer = self.objects.complete_multipart(key, id, parts).await;
        self.end(request, answer)
    }

    async fn abort_multipart(&self, key: &Path, id: &MultipartId) -> Result<()> {
        let request = self.begin("abort parts", key.as_ref())?;
        self.pass().await?;
        let answer = self.objects.abort_multipart(key, id).await;
        self.end(request, answer)
    }
}

#[async_trait::async_trait]
impl PaginatedListStore for Memory {
    /// Like S3: a folder sorts where its first key would.
    async fn list_paginated(
        &self,
        prefix: Option<&str>,
        options: PaginatedListOptions,
    ) -> Result<PaginatedListResult> {
        let prefix = prefix.unwrap_or_default();
        let request = self.begin("list", prefix)?;
        self.pass().await?;
        if prefix.ends_with("collections/") {
            self.looks.fetch_add(1, Ordering::Relaxed);
        }
        let after = options.page_token.or(options.offset).unwrap_or_default();
        let limit = options.max_keys.unwrap_or(self.page).min(self.page);
        let mut result = ListResult {
            objects: Vec::new(),
            common_prefixes: Vec::new(),
            extensions: Extensions::default(),
        };
        let (mut count, mut last, mut token) = (0, String::new(), None);
        for meta in self.objects.list(None).try_collect::<Vec<_>>().await? {
            let key = meta.location.to_string();
            let Some(below) = key.strip_prefix(prefix) else {
                continue;
            };
            let folder = below.find('/').filter(|_| options.delimiter.is_some());
            let folder = folder.map(|end| format!("{prefix}{}", &below[..=end]));
            let name = folder.clone().unwrap_or_else(|| key.clone());
            // A page that ended with a folder includes all of its keys.
            let is_past = after.ends_with('/')
                && folder
                    .as_ref()
                    .is_some_and(|folder| after.starts_with(folder));
            if key <= after || is_past || name == last {
                continue;
            }
            if count == limit {
                token = Some(last);
                break;
            }
            count += 1;
            match folder {
                Some(folder) => result.common_prefixes.push(Path::from(folder)),
                None => result.objects.push(meta),
            }
            last = name;
        }
        let answer = PaginatedListResult {
            result,
            page_token: token,
        };
        self.end(request, Ok(answer))
    }
}
