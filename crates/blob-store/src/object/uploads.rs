//! Upload sessions, stored in the bucket so that any replica can resume them: one immutable object for each segment,
//! named after the offset of its first byte.

use std::ops::Range;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use model::time::Timestamp;
use object_store::path::Path;
use tokio::sync::OwnedMutexGuard;
use uuid::Uuid;

use super::collection_marks;
use super::inner::{BucketInner, BucketSession, Segment};
use super::multipart_record::{MultipartRecord, RECORD_BYTES_MAX};
use super::quarantine::COPY_LIMIT;
use super::requests::unavailable;
use super::write::{self, BatchEnd, ByteSource, WriteTarget};
use crate::content_name::ContentName;
use crate::{Result, StoreError};
use bucket::ObjectInfo;
use oci::{Algorithm, Digest, Hasher, Repository};

/// Segments of one upload; their names are in memory during an append.
const SEGMENTS_LIMIT: usize = 10_000;
const STARTED: &str = "startedat";
/// Prefix of segments, before the offset.
const SEGMENT: &str = "data.";
/// Prefix of records of multipart uploads in progress.
const PARTS: &str = "parts.";

fn size(segments: &[Segment]) -> u64 {
    segments.iter().map(|segment| segment.size).sum()
}

/// The contiguous segments from the first byte on. Of two segments that two replicas wrote at one offset, all replicas
/// use the one whose name sorts first.
fn contiguous(names: impl Iterator<Item = (String, u64)>) -> Vec<Segment> {
    let mut found: Vec<_> = names
        .filter_map(|(name, size)| {
            let first: u64 = name
                .strip_prefix(SEGMENT)?
                .split('.')
                .next()?
                .parse()
                .ok()?;
            Some((first, name, size))
        })
        .collect();
    found.sort_unstable();
    let mut segments = Vec::new();
    let mut end = 0;
    for (first, name, size) in found {
        if first == end && size > 0 {
            end += size;
            segments.push(Segment { name, size });
        }
    }
    segments
}

impl BucketInner {
    fn upload_key(&self, repository: &Repository, upload: Uuid, name: &str) -> Path {
        Path::from(format!("{}{name}", self.layout.upload(repository, upload)))
    }

    pub(super) async fn start_upload(
        &self,
        repository: &Repository,
        now: Timestamp,
    ) -> Result<Uuid> {
        let upload = Uuid::new_v4();
        let key = self.upload_key(repository, upload, STARTED);
        self.bucket.put(&key, now.to_rfc3339()).await?;
        let session = BucketSession {
            segments: Vec::new(),
            hasher: Some(Hasher::new(Algorithm::Sha256)),
        };
        self.sessions.insert(upload, session);
        Ok(upload)
    }

    /// Names and sizes of the objects of an upload. Errors: UnknownUpload.
    async fn entries(&self, repository: &Repository, upload: Uuid) -> Result<Vec<(String, u64)>> {
        let listed = self.bucket.list(self.layout.upload(repository, upload));
        let entries = listed.map_ok(|entry| (entry.below, entry.meta.size));
        let entries: Vec<_> = entries.try_collect().await?;
        if !entries.iter().any(|(name, _)| name == STARTED) {
            return Err(StoreError::UnknownUpload);
        }
        Ok(entries)
    }

    /// Errors: UnknownUpload.
    async fn segments(&self, repository: &Repository, upload: Uuid) -> Result<Vec<Segment>> {
        let entries = self.entries(repository, upload).await?;
        Ok(contiguous(entries.into_iter()))
    }

    /// Completes a segment whose writer died, with the parts that it stored. A writer that is alive on another replica
    /// fails by it; its client asks for the size of an upload only when its own request has failed.
    async fn recovered_segments(
        &self,
        repository: &Repository,
        upload: Uuid,
    ) -> Result<Vec<Segment>> {
        let entries = self.entries(repository, upload).await?;
        let segments = contiguous(entries.iter().cloned());
        let end = format!("{PARTS}{SEGMENT}{:020}.", size(&segments));
        let Some((name, _)) = entries.iter().find(|(name, _)| name.starts_with(&end)) else {
            return Ok(segments);
        };
        let key = self.upload_key(repository, upload, name);
        let record = self.bucket.get(&key, RECORD_BYTES_MAX).await?;
        let record = record.and_then(|text| MultipartRecord::parse(&text));
        let Some(MultipartRecord { key, id, parts }) = record.filter(|one| !one.parts.is_empty())
        else {
            return Ok(segments);
        };
        if let Err(error) = self.bucket.end_parts(&key, &id, parts).await {
            let error = model::error::chain(&error);
            tracing::warn!(error, "the parts of an interrupted upload are lost");
            return Ok(segments);
        }
        self.segments(repository, upload).await
    }

    pub(super) async fn upload_size(&self, repository: &Repository, upload: Uuid) -> Result<u64> {
        let session = self.sessions.get(upload);
        let segments = match session.try_lock() {
            Ok(_no_writer) => self.recovered_segments(repository, upload).await?,
            Err(_) => self.segments(repository, upload).await?,
        };
        Ok(size(&segments))
    }

    pub(super) async fn append_upload<S, E>(
        &self,
        repository: &Repository,
        upload: Uuid,
        mut session: OwnedMutexGuard<BucketSession>,
        offset: Option<u64>,
        bytes: S,
    ) -> Result<u64>
    where
        S: Stream<Item = std::result::Result<Bytes, E>> + Send + Unpin,
        E: std::error::Error + Send + Sync + 'static,
    {
        let mut segments = self.recovered_segments(repository, upload).await?;
        let mut received = size(&segments);
        if offset.is_some_and(|offset| offset != received) {
            return Err(StoreError::OutOfOrder { received });
        }
        // The hasher is moved out, so that a cancelled task leaves no stale hash.
        let mut hasher = session
            .hasher
            .take()
            .filter(|_| session.segments == segments);
        if segments.is_empty() {
            hasher = Some(Hasher::new(Algorithm::Sha256));
        }
        let mut bytes = ByteSource::new(bytes);
        loop {
            if segments.len() >= SEGMENTS_LIMIT {
                let why = "the upload has too many segments; send larger chunks";
                return Err(StoreError::Interrupted(why.into()));
            }
            let name = format!("{SEGMENT}{received:020}.{}", Uuid::new_v4().simple());
            let target = WriteTarget {
                key: self.upload_key(repository, upload, &name),
                parts: Some(self.upload_key(repository, upload, &format!("{PARTS}{name}"))),
                part_bytes: self.part_bytes,
                // Small enough for CopyObject.
                limit: COPY_LIMIT - self.part_bytes,
            };
            let written = write::write(self, &target, &mut bytes, hasher).await?;
            received += written.size;
            hasher = written.hasher;
            if written.size > 0 {
                let size = written.size;
                segments.push(Segment { name, size });
            }
            let result = match written.end {
                BatchEnd::No => continue,
                BatchEnd::Whole => Ok(received),
                BatchEnd::Cut(error) => Err(StoreError::Interrupted(error)),
            };
            *session = BucketSession { segments, hasher };
            return result;
        }
    }

    pub(super) async fn finish_upload(
        &self,
        repository: &Repository,
        upload: Uuid,
        session: &BucketSession,
        claimed: &Digest,
    ) -> Result<()> {
        let known = session.hasher.clone().map(Hasher::finish);
        // Segments with the claimed digest are the upload, even if another replica added more.
        let is_known = known.as_ref() == Some(claimed) && !session.segments.is_empty();
        let segments = if is_known {
            session.segments.clone()
        } else {
            self.recovered_segments(repository, upload).await?
        };
        let canonical = match known {
            Some(known) if session.segments == segments => known,
            _ => {
                self.hash(repository, upload, &segments, Algorithm::Sha256)
                    .await?
            }
        };
        let actual = match claimed.algorithm() {
            Algorithm::Sha256 => canonical.clone(),
            long @ Algorithm::Sha512 => self.hash(repository, upload, &segments, long).await?,
        };
        if actual != *claimed {
            self.drop_upload(repository, upload).await?;
            return Err(StoreError::WrongDigest {
                claimed: claimed.clone(),
                actual,
            });
        }
        for _ in 0..collection_marks::ATTEMPTS {
            let stored = self.bucket.head(&self.layout.data(&canonical)).await?;
            let is_there = stored.is_some_and(|stored| stored.size == size(&segments));
            // Existing bytes that are not verified may be damaged: they are replaced.
            if !is_there || !self.verified.contains(&canonical) {
                self.place(repository, upload, &segments, &canonical)
                    .await?;
            }
            let name = ContentName::new(canonical.clone(), claimed);
            if self.add_blob(repository, &name).await? {
                self.verified.mark(&canonical);
                // Leftovers only take space, until the upload is purged.
                if let Err(error) = self.drop_upload(repository, upload).await {
                    let error = model::error::chain(&error);
                    tracing::warn!(error, "the segments of an upload are not removed");
                }
                return Ok(());
            }
        }
        Err(collection_marks::contended())
    }

    /// Copies the segments to the content's key.
    async fn place(
        &self,
        repository: &Repository,
        upload: Uuid,
        segments: &[Segment],
        canonical: &Digest,
    ) -> Result<()> {
        let data = self.layout.data(canonical);
        match segments {
            [] => Ok(self.bucket.put(&data, Bytes::new()).await?),
            [one] => {
                let key = self.upload_key(repository, upload, &one.name);
                let is_there = self.copy(&key, one.size, &data).await?;
                is_there.then_some(()).ok_or(StoreError::UnknownUpload)
            }
            several => {
                let target = WriteTarget {
                    key: data,
                    parts: Some(self.upload_key(repository, upload, &format!("{PARTS}whole"))),
                    part_bytes: self
                        .part_bytes
                        .max(size(several).div_ceil(write::PARTS_LIMIT)),
                    limit: u64::MAX,
                };
                let mut bytes =
                    ByteSource::new(self.read_segments(repository, upload, several, 0..u64::MAX));
                let written = write::write(self, &target, &mut bytes, None).await?;
                match written.end {
                    BatchEnd::Cut(error) => Err(unavailable(error)),
                    _ => Ok(()),
                }
            }
        }
    }

    /// Errors: UnknownUpload – also if the range is not received yet.
    pub(super) async fn open_upload(
        &self,
        repository: &Repository,
        upload: Uuid,
        part: Range<u64>,
    ) -> Result<impl Stream<Item = std::io::Result<Bytes>> + Send + Unpin + use<>> {
        let segments = self.segments(repository, upload).await?;
        if part.end > size(&segments) {
            return Err(StoreError::UnknownUpload);
        }
        Ok(self.read_segments(repository, upload, &segments, part))
    }

    fn read_segments(
        &self,
        repository: &Repository,
        upload: Uuid,
        segments: &[Segment],
        part: Range<u64>,
    ) -> impl Stream<Item = std::io::Result<Bytes>> + Send + Unpin + use<> {
        let (mut parts, mut start) = (Vec::new(), 0);
        for segment in segments {
            let end = start + segment.size;
            let (first, last) = (part.start.max(start), part.end.min(end));
            if first < last {
                let key = self.upload_key(repository, upload, &segment.name);
                parts.push((key, first - start..last - start));
            }
            start = end;
        }
        let bucket = self.bucket.clone();
        let streams = futures_util::stream::iter(parts).then(move |(key, part)| {
            let bucket = bucket.clone();
            async move {
                let found = bucket.read(&key, part).await;
                found
                    .map_err(std::io::Error::other)?
                    .map(|(_, bytes)| bytes)
                    .ok_or_else(|| std::io::Error::from(std::io::ErrorKind::NotFound))
            }
        });
        Box::pin(streams.try_flatten())
    }

    async fn hash(
        &self,
        repository: &Repository,
        upload: Uuid,
        segments: &[Segment],
        algorithm: Algorithm,
    ) -> Result<Digest> {
        let bytes = self.read_segments(repository, upload, segments, 0..u64::MAX);
        write::hash(bytes, algorithm).await
    }

    /// Errors: UnknownUpload.
    pub(super) async fn cancel_upload(&self, repository: &Repository, upload: Uuid) -> Result<()> {
        self.segments(repository, upload).await?;
        self.drop_upload(repository, upload).await
    }

    /// Removes all objects of an upload, and aborts its multipart uploads.
    async fn drop_upload(&self, repository: &Repository, upload: Uuid) -> Result<()> {
        let listed = self.bucket.list(self.layout.upload(repository, upload));
        let entries: Vec<_> = listed.try_collect().await?;
        let mut keys = Vec::with_capacity(entries.len());
        for entry in entries {
            let key = self.upload_key(repository, upload, &entry.below);
            if entry.below.starts_with(PARTS)
                && let Some(text) = self.bucket.get(&key, RECORD_BYTES_MAX).await?
                && let Some(record) = MultipartRecord::parse(&text)
            {
                self.bucket.drop_parts(&record.key, &record.id).await?;
            }
            keys.push(key);
        }
        Ok(self.bucket.delete(keys).await?)
    }

    pub(super) async fn purge_uploads(&self, before: Timestamp) -> Result<usize> {
        let mut purged = 0;
        let mut walk = self.walk("");
        while let Some(found) = walk.next().await? {
            if found.has("_uploads") {
                purged += self.purge_uploads_of(&found.repository, before).await?;
            }
        }
        Ok(purged)
    }

    async fn purge_uploads_of(&self, repository: &Repository, before: Timestamp) -> Result<usize> {
        let mut latest = std::collections::BTreeMap::<Uuid, Timestamp>::new();
        let mut listed = Box::pin(self.bucket.list(self.layout.uploads(repository)));
        while let Some(entry) = listed.try_next().await? {
            let ObjectInfo { modified, .. } = entry.meta;
            let name = entry.below.split('/').next().unwrap_or_default();
            if let Ok(upload) = name.parse::<Uuid>() {
                let latest = latest.entry(upload).or_insert(modified);
                *latest = modified.max(*latest);
            }
        }
        let mut purged = 0;
        for (upload, _) in latest.into_iter().filter(|(_, latest)| *latest < before) {
            let session = self.sessions.get(upload);
            // The writer of an active upload holds the lock, even if its last byte is old.
            if let Ok(_guard) = session.try_lock() {
                self.drop_upload(repository, upload).await?;
                purged += 1;
            }
            self.sessions.forget(upload);
        }
        Ok(purged)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn segments_follow_one_another() {
        let contiguous = |names: &[(&str, u64)]| {
            let names = names.iter().map(|(name, size)| ((*name).to_owned(), *size));
            let segments = super::contiguous(names).into_iter();
            segments.map(|segment| segment.name).collect::<Vec<_>>()
        };
        assert_eq!(
            contiguous(&[("startedat", 20), ("parts.data.0.a", 7)]),
            [""; 0]
        );
        assert_eq!(
            contiguous(&[("data.5.b", 2), ("data.0.x", 5), ("data", 9)]),
            ["data.0.x", "data.5.b"]
        );
        // Two replicas wrote at the same offset: the other segments do not continue the first one.
        assert_eq!(
            contiguous(&[
                ("data.0.a", 5),
                ("data.0.b", 7),
                ("data.7.c", 1),
                ("data.5.d", 1)
            ]),
            ["data.0.a", "data.5.d"]
        );
        assert_eq!(contiguous(&[("data.1.a", 5), ("data.0.e", 0)]), [""; 0]);
    }
}
