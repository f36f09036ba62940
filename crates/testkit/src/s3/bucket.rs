//! The store behind the S3 server: one bucket in memory, with times in whole seconds, as Amazon's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, CommonPrefix,
    CompleteMultipartUploadInput, CompleteMultipartUploadOutput, CopyObjectInput, CopyObjectOutput,
    CopyObjectResult, CopySource, CreateMultipartUploadInput, CreateMultipartUploadOutput,
    DeleteObjectsInput, DeleteObjectsOutput, DeletedObject, ETag, GetObjectInput, GetObjectOutput,
    HeadObjectInput, HeadObjectOutput, ListObjectsV2Input, ListObjectsV2Output, Object,
    PutObjectInput, PutObjectOutput, StreamingBlob, Timestamp, UploadPartInput, UploadPartOutput,
};
use s3s::{Body, S3, S3Request, S3Response, S3Result, s3_error};
use sha2::{Digest as _, Sha256};

/// Name of the bucket.
pub const BUCKET: &str = "registry";

/// Clones share it.
#[derive(Debug, Clone, Default)]
pub struct S3Bucket(Arc<Mutex<S3State>>);

/// Content of the bucket.
#[derive(Debug, Default)]
pub struct S3State {
    /// The bucket was removed.
    pub is_gone: bool,
    /// Objects by key.
    pub objects: BTreeMap<String, StoredObject>,
    /// By id and number.
    pub parts: BTreeMap<(String, i32), Bytes>,
    uploads: u64,
    /// Ids of uploads in parts that were neither completed nor aborted.
    open: BTreeSet<String>,
}

impl S3State {
    /// Errors: NoSuchUpload – also for one that was completed or aborted.
    fn known(&self, upload: &str) -> S3Result<()> {
        let is_known = self.open.contains(upload);
        is_known
            .then_some(())
            .ok_or_else(|| s3_error!(NoSuchUpload))
    }
}

/// An object.
#[derive(Debug, Clone)]
pub struct StoredObject {
    /// Its bytes.
    pub content: Bytes,
    modified: SystemTime,
}

impl StoredObject {
    fn new(content: Bytes) -> Self {
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
        Self {
            content,
            modified: SystemTime::UNIX_EPOCH + Duration::from_secs(since),
        }
    }

    fn length(&self) -> Option<i64> {
        i64::try_from(self.content.len()).ok()
    }

    fn tag(&self) -> ETag {
        tag(&self.content)
    }
}

fn tag(content: &[u8]) -> ETag {
    let hash = Sha256::digest(content);
    let text = hash.iter().take(16).map(|byte| format!("{byte:02x}"));
    ETag::Strong(text.collect())
}

impl S3Bucket {
    /// Its content.
    ///
    /// # Panics
    /// A test failed while it held the content.
    pub fn state(&self) -> MutexGuard<'_, S3State> {
        self.0.lock().unwrap()
    }

    /// Whether no key has the prefix.
    pub fn holds_nothing(&self, prefix: &str) -> bool {
        let state = self.state();
        let next = state.objects.range(prefix.to_owned()..).next();
        next.is_none_or(|(key, _)| !key.starts_with(prefix))
    }

    fn there(&self, bucket: &str) -> S3Result<MutexGuard<'_, S3State>> {
        let state = self.state();
        if state.is_gone || bucket != BUCKET {
            return Err(s3_error!(NoSuchBucket));
        }
        Ok(state)
    }

    fn stored(&self, bucket: &str, key: &str) -> S3Result<StoredObject> {
        let state = self.there(bucket)?;
        state
            .objects
            .get(key)
            .cloned()
            .ok_or_else(|| s3_error!(NoSuchKey))
    }
}

async fn received(body: Option<StreamingBlob>) -> S3Result<Bytes> {
    let body = body.ok_or_else(|| s3_error!(IncompleteBody))?;
    let pieces = body.try_collect::<Vec<Bytes>>().await;
    let pieces = pieces.map_err(|_| s3_error!(IncompleteBody))?;
    Ok(pieces.concat().into())
}

#[async_trait::async_trait]
impl S3 for S3Bucket {
    async fn put_object(
        &self,
        req: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        let content = received(req.input.body).await?;
        let stored = StoredObject::new(content);
        let e_tag = Some(stored.tag());
        self.there(&req.input.bucket)?
            .objects
            .insert(req.input.key, stored);
        Ok(S3Response::new(PutObjectOutput {
            e_tag,
            ..Default::default()
        }))
    }

    async fn get_object(
        &self,
        req: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        let stored = self.stored(&req.input.bucket, &req.input.key)?;
        let whole = stored.content.len() as u64;
        let (content, content_range) = match req.input.range {
            None => (stored.content.clone(), None),
            Some(range) => {
                let range = range.check(whole)?;
                let reported = format!("bytes {}-{}/{whole}", range.start, range.end - 1);
                let [first, end] = [range.start, range.end].map(|n| usize::try_from(n).unwrap());
                (stored.content.slice(first..end), Some(reported))
            }
        };
        Ok(S3Response::new(GetObjectOutput {
            content_length: i64::try_from(content.len()).ok(),
            body: Some(StreamingBlob::from(Body::from(content))),
            content_range,
            e_tag: Some(stored.tag()),
            last_modified: Some(Timestamp::from(stored.modified)),
            ..Default::default()
        }))
    }

    async fn head_object(
        &self,
        req: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let stored = self.stored(&req.input.bucket, &req.input.key)?;
        Ok(S3Response::new(HeadObjectOutput {
            content_length: stored.length(),
            e_tag: Some(stored.tag()),
            last_modified: Some(Timestamp::from(stored.modified)),
            ..Default::default()
        }))
    }

    async fn list_objects_v2(
        &self,
        req: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let state = self.there(&req.input.bucket)?;
        let prefix = req.input.prefix.unwrap_or_default();
        let after = req
            .input
            .continuation_token
            .or(req.input.start_after)
            .unwrap_or_default();
        let limit = usize::try_from(req.input.max_keys.unwrap_or(1000)).unwrap();
        let (mut contents, mut folders) = (Vec::new(), Vec::<String>::new());
        let (mut last, mut is_truncated) = (String::new(), false);
        for (key, stored) in state.objects.range(prefix.clone()..) {
            let Some(below) = key.strip_prefix(&prefix) else {
                break;
            };
            let folder = below.find('/').filter(|_| req.input.delimiter.is_some());
            let folder = folder.map(|end| format!("{prefix}{}", &below[..=end]));
            let is_shown = folder.as_ref().is_some_and(|folder| {
                folders.last() == Some(folder) || after.ends_with('/') && after.starts_with(folder)
            });
            if *key <= after || is_shown {
                continue;
            }
            if contents.len() + folders.len() == limit {
                is_truncated = true;
                break;
            }
            last = folder.clone().unwrap_or_else(|| key.clone());
            match folder {
                Some(folder) => folders.push(folder),
                None => contents.push(Object {
                    key: Some(key.clone()),
                    size: stored.length(),
                    e_tag: Some(stored.tag()),
                    last_modified: Some(Timestamp::from(stored.modified)),
                    ..Default::default()
                }),
            }
        }
        let folders = folders.into_iter().map(|prefix| CommonPrefix {
            prefix: Some(prefix),
        });
        Ok(S3Response::new(ListObjectsV2Output {
            contents: Some(contents),
            common_prefixes: Some(folders.collect()),
            is_truncated: Some(is_truncated),
            next_continuation_token: is_truncated.then_some(last),
            ..Default::default()
        }))
    }

    async fn delete_objects(
        &self,
        req: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        let mut state = self.there(&req.input.bucket)?;
        let mut deleted = Vec::new();
        for object in req.input.delete.objects {
            state.objects.remove(&object.key);
            let key = Some(object.key);
            deleted.push(DeletedObject {
                key,
                ..Default::default()
            });
        }
        let deleted = Some(deleted);
        Ok(S3Response::new(DeleteObjectsOutput {
            deleted,
            ..Default::default()
        }))
    }

    async fn copy_object(
        &self,
        req: S3Request<CopyObjectInput>,
    ) -> S3Result<S3Response<CopyObjectOutput>> {
        let CopySource::Bucket { bucket, key, .. } = &req.input.copy_source else {
            return Err(s3_error!(NotImplemented));
        };
        let stored = StoredObject::new(self.stored(bucket, key)?.content);
        let result = CopyObjectResult {
            e_tag: Some(stored.tag()),
            ..Default::default()
        };
        self.there(&req.input.bucket)?
            .objects
            .insert(req.input.key, stored);
        let copy_object_result = Some(result);
        Ok(S3Response::new(CopyObjectOutput {
            copy_object_result,
            ..Default::default()
        }))
    }

    async fn create_multipart_upload(
        &self,
        req: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let mut state = self.there(&req.input.bucket)?;
        state.uploads += 1;
        let upload = state.uploads.to_string();
        state.open.insert(upload.clone());
        let upload_id = Some(upload);
        Ok(S3Response::new(CreateMultipartUploadOutput {
            upload_id,
            ..Default::default()
        }))
    }

    async fn upload_part(
        &self,
        req: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        let part = received(req.input.body).await?;
        let e_tag = Some(tag(&part));
        let place = (req.input.upload_id, req.input.part_number);
        let mut state = self.there(&req.input.bucket)?;
        state.known(&place.0)?;
        state.parts.insert(place, part);
        Ok(S3Response::new(UploadPartOutput {
            e_tag,
            ..Default::default()
        }))
    }

    async fn complete_multipart_upload(
        &self,
        req: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let mut state = self.there(&req.input.bucket)?;
        state.known(&req.input.upload_id)?;
        let parts = req.input.multipart_upload.and_then(|upload| upload.parts);
        let mut content = Vec::new();
        let mut shortest = usize::MAX;
        for part in parts.unwrap_or_default() {
            // All but the last have to have a length.
            if shortest < 5 << 20 {
                return Err(s3_error!(EntityTooSmall));
            }
            let place = (
                req.input.upload_id.clone(),
                part.part_number.unwrap_or_default(),
            );
            let part = state
                .parts
                .remove(&place)
                .ok_or_else(|| s3_error!(InvalidPart))?;
            shortest = shortest.min(part.len());
            content.extend_from_slice(&part);
        }
        let stored = StoredObject::new(content.into());
        let e_tag = Some(stored.tag());
        state.objects.insert(req.input.key, stored);
        state.open.remove(&req.input.upload_id);
        Ok(S3Response::new(CompleteMultipartUploadOutput {
            e_tag,
            ..Default::default()
        }))
    }

    async fn abort_multipart_upload(
        &self,
        req: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        let mut state = self.there(&req.input.bucket)?;
        state.known(&req.input.upload_id)?;
        state.open.remove(&req.input.upload_id);
        state.parts.retain(|(id, _), _| *id != req.input.upload_id);
        Ok(S3Response::new(AbortMultipartUploadOutput::default()))
    }
}
