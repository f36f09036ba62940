//! Upload sessions of a folder: opened, read, finished, dropped and purged; all functions block.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _};
use std::path::Path;

use bytes::Bytes;
use model::time::Timestamp;
use uuid::Uuid;

use super::change::{BlobSource, ContentName, JournalEntry, StoreChange};
use super::download::Pieces;
use super::inner::{DiskInner, DiskSession};
use super::{scan, staged};
use crate::{Result, StoreError};
use oci::{Algorithm, Digest, Hasher, Repository};

/// Units: bytes. Blobs up to this size are journalled whole, which is cheaper than an fsync for each.
const JOURNALLED_BYTES: u64 = 32 * 1024;

impl DiskInner {
    pub(super) fn start_upload(&self, repository: &Repository, now: Timestamp) -> Result<Uuid> {
        self.may_add()?;
        let upload = Uuid::new_v4();
        let dir = self.layout().upload(repository, upload);
        let create = || {
            fs::create_dir_all(&dir)?;
            fs::write(dir.join("startedat"), now.to_rfc3339())?;
            File::create_new(dir.join("data")).map(drop)
        };
        if let Err(error) = create() {
            // Remove the folder, so that failed uploads do not pile up on a full disk.
            fs::remove_dir_all(&dir).ok();
            return Err(StoreError::io("opening an upload")(error));
        }
        let hasher = Some(Hasher::new(Algorithm::Sha256));
        self.sessions
            .insert(upload, DiskSession { size: 0, hasher });
        Ok(upload)
    }

    pub(super) fn upload_size(&self, repository: &Repository, upload: Uuid) -> Result<u64> {
        let dir = self.layout().upload(repository, upload);
        match fs::metadata(dir.join("data")) {
            Ok(metadata) => Ok(metadata.len()),
            // An upload session of distribution has no data file before its first byte.
            Err(error) if staged::is_absent(&error) && dir.join("startedat").is_file() => Ok(0),
            Err(error) if staged::is_absent(&error) => Err(StoreError::UnknownUpload),
            Err(error) => Err(StoreError::io("reading an upload")(error)),
        }
    }

    pub(super) fn open_upload(
        &self,
        repository: &Repository,
        upload: Uuid,
        first: u64,
        length: u64,
    ) -> Result<Pieces> {
        let data = self.layout().upload(repository, upload).join("data");
        let opened = File::open(data);
        opened
            .and_then(|file| Pieces::open(file, first, length, None))
            .map_err(|error| {
                if staged::is_absent(&error) {
                    StoreError::UnknownUpload
                } else {
                    StoreError::io("reading an upload")(error)
                }
            })
    }

    pub(super) fn drop_upload(&self, repository: &Repository, upload: Uuid) -> Result<()> {
        match fs::remove_dir_all(self.layout().upload(repository, upload)) {
            Err(error) if !staged::is_absent(&error) => {
                Err(StoreError::io("removing an upload")(error))
            }
            _ => Ok(()),
        }
    }

    /// The change that commits an upload as a blob. Its bytes are synced or travel with the change.
    pub(super) fn finished(
        &self,
        repository: &Repository,
        upload: Uuid,
        session: &DiskSession,
        claimed: &Digest,
    ) -> Result<JournalEntry> {
        let size = self.upload_size(repository, upload)?;
        let path = self.layout().upload(repository, upload).join("data");
        let failed = || StoreError::io("finishing an upload");
        let mut file = File::options()
            .append(true)
            .read(true)
            .create(true)
            .open(&path)
            .map_err(failed())?;
        let canonical = match &session.hasher {
            Some(hasher) if session.size == size => hasher.clone().finish(),
            _ => scan::hash(&file, Algorithm::Sha256, || true).map_err(failed())?,
        };
        let actual = match claimed.algorithm() {
            Algorithm::Sha256 => canonical.clone(),
            Algorithm::Sha512 => scan::hash(&file, Algorithm::Sha512, || true).map_err(failed())?,
        };
        if actual != *claimed {
            self.drop_upload(repository, upload)?;
            return Err(StoreError::WrongDigest {
                claimed: claimed.clone(),
                actual,
            });
        }
        let content = if size <= JOURNALLED_BYTES {
            let mut content = Vec::new();
            file.rewind().map_err(failed())?;
            file.read_to_end(&mut content).map_err(failed())?;
            Some(Bytes::from(content))
        } else {
            if let Err(error) = make_durable(&file, &path, &self.layout().repositories()) {
                // After a failed fsync, the kernel may drop dirty pages and report success for the next fsync: a
                // retry with these bytes would acknowledge lost data.
                self.drop_upload(repository, upload)?;
                return Err(failed()(error));
            }
            None
        };
        let change = StoreChange::AddBlob {
            repository: repository.clone(),
            blob: ContentName::new(canonical, claimed),
            size,
            from: BlobSource::Upload(upload),
        };
        Ok(JournalEntry { change, content })
    }

    pub(super) fn purge_uploads(&self, before: Timestamp) -> Result<usize> {
        let before = std::time::SystemTime::from(before);
        let failed = || StoreError::io("purging abandoned uploads");
        let mut purged = 0;
        for repository in scan::having(self.layout(), &["_uploads"], || true).map_err(failed())? {
            let uploads = self.layout().uploads(&repository);
            for name in scan::folders(&uploads).map_err(failed())? {
                let Ok(upload) = name.parse::<Uuid>() else {
                    continue;
                };
                let session = self.sessions.get(upload);
                // The writer of an active upload holds the lock, even if its last byte is old.
                let Ok(_guard) = session.try_lock() else {
                    continue;
                };
                let dir = self.layout().upload(&repository, upload);
                if is_older(&dir, before).map_err(failed())? {
                    self.drop_upload(&repository, upload)?;
                    self.sessions.forget(upload);
                    purged += 1;
                }
            }
        }
        Ok(purged)
    }
}

/// Syncs the bytes, then each folder from the upload's up to `repositories`, since any of them may be new. Before the
/// journal entry: the rename that it promises needs a durable file.
fn make_durable(file: &File, path: &Path, repositories: &Path) -> io::Result<()> {
    file.sync_data()?;
    let folders = path.ancestors().skip(1);
    for folder in folders.take_while(|folder| folder.starts_with(repositories)) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Whether an upload's folder is unchanged since `before`; also when it is deleted meanwhile.
fn is_older(dir: &Path, before: std::time::SystemTime) -> io::Result<bool> {
    for path in [dir.join("data"), dir.to_owned()] {
        match fs::metadata(path).and_then(|metadata| metadata.modified()) {
            Ok(changed_at) if changed_at >= before => return Ok(false),
            Ok(_) => {}
            Err(error) if staged::is_absent(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
