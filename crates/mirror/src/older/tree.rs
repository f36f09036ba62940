//! Folders with repositories in them, as older tools write them for `file://` names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use futures_util::stream::{self, TryStreamExt as _};
use model::Error;
use oci::{Digest, MANIFEST_LIMIT_BYTES, Manifest, Reference, Repository, Tag};
use oci_client::Client;
use oci_client::client::BlobSource;
use tempfile::NamedTempFile;

use crate::blobs::BlobProvider;
use crate::content::{ImageContent, ResolvedImage, SourceBlob};
use crate::progress::{Amount, Phase, RunProgress};

/// Before the names of such folders.
pub(super) const SCHEME: &str = "file://";
/// The folder with all repositories, and those in each of them.
const ROOT: &str = "v2";
const BLOBS: &str = "blobs";
const MANIFESTS: &str = "manifests";
const FILE_MODE: u32 = 0o644;

/// A catalog in such a folder: `file://PATH:TAG`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryTree {
    /// The repository of the catalog; those of its images are below it.
    pub name: Repository,
    pub tag: Tag,
}

/// Blobs in files.
#[derive(Debug, Default)]
pub(super) struct BlobFiles(pub(super) BTreeMap<Digest, PathBuf>);

impl BlobProvider for BlobFiles {
    fn source(&self, digest: &Digest) -> Option<BlobSource> {
        self.0.get(digest).cloned().map(BlobSource::File)
    }
}

impl FromStr for RepositoryTree {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            let reason = format!("{text:?} is no catalog in a folder: write file://PATH:TAG");
            Error::invalid("source", reason)
        };
        let named = text.strip_prefix(SCHEME).ok_or_else(wrong)?;
        let (name, tag) = named.rsplit_once(':').ok_or_else(wrong)?;
        Ok(Self {
            name: name.parse()?,
            tag: tag.parse()?,
        })
    }
}

impl RepositoryTree {
    /// The repository of an image in the folder; that of the catalog without one.
    pub(super) fn repository(&self, image: Option<&Repository>) -> Result<Repository, Error> {
        match image {
            Some(image) => format!("{}/{image}", self.name).parse(),
            None => Ok(self.name.clone()),
        }
    }

    /// The manifest with that tag or digest.
    ///
    /// Blocking. Errors: NotFound; Invalid – it is damaged, or none.
    pub(super) fn manifest(dir: &Path, image: &Reference) -> Result<Manifest, Error> {
        let name = match &image.digest {
            Some(digest) => digest.to_string(),
            None => image.tag.as_ref().map_or_else(String::new, Tag::to_string),
        };
        let path = folder(dir, &image.repository).join(MANIFESTS).join(name);
        let unreadable = |e: io::Error| match e.kind() {
            io::ErrorKind::NotFound => Error::not_found("manifest", path.display()),
            _ => Error::internal(format!("reading {}", path.display()), e),
        };
        let size = fs::metadata(&path).map_err(unreadable)?.len();
        let limit = MANIFEST_LIMIT_BYTES as u64;
        if size > limit {
            return Err(Error::TooLarge {
                what: "manifest",
                limit,
            });
        }
        let manifest = Manifest::parse(fs::read(&path).map_err(unreadable)?.into(), None)?;
        if image
            .digest
            .as_ref()
            .is_some_and(|it| *it != manifest.digest)
        {
            return Err(Error::invalid(path.display().to_string(), "it is damaged"));
        }
        Ok(manifest)
    }

    /// File of a repository's blob.
    pub(super) fn blob(dir: &Path, repository: &Repository, digest: &Digest) -> PathBuf {
        folder(dir, repository).join(BLOBS).join(digest.to_string())
    }

    /// Writes images with their content, at most `parallel` blobs at a time; tags come last. Complete blobs are not fetched
    /// again. `place` is the repository of an image in the folder.
    ///
    /// Errors: those of the sources; Internal – the disk.
    pub(super) async fn write(
        dir: &Path,
        content: &ImageContent,
        place: impl Fn(&ResolvedImage) -> Result<Repository, Error>,
        client: &Client,
        parallel: usize,
        progress: &RunProgress,
    ) -> Result<(), Error> {
        let mut users: BTreeMap<&Digest, BTreeSet<Repository>> = BTreeMap::new();
        for image in &content.images {
            let repository = place(image)?;
            for manifest in content.manifests_of(&image.digest) {
                for blob in manifest.blobs() {
                    users
                        .entry(&blob.digest)
                        .or_default()
                        .insert(repository.clone());
                }
            }
        }
        let blobs: Vec<_> = users
            .into_iter()
            .filter_map(|(digest, users)| Some((digest, content.blobs.get(digest)?, users)))
            .collect();
        let whole = Amount {
            items: blobs.len() as u64,
            bytes: blobs.iter().map(|(_, blob, _)| blob.size).sum(),
        };
        progress.begin(Phase::Packing, whole);
        stream::iter(blobs.into_iter().map(Ok))
            .try_for_each_concurrent(parallel.max(1), |(digest, blob, users)| async move {
                put_blob(dir, digest, blob, &users, client).await?;
                progress.add_items(1);
                progress.add_bytes(blob.size);
                Ok::<_, Error>(())
            })
            .await?;
        for image in &content.images {
            let folder = folder(dir, &place(image)?).join(MANIFESTS);
            put_manifests(&folder, image, content)
                .map_err(|e| Error::internal(format!("writing to {}", folder.display()), e))?;
        }
        Ok(())
    }
}

fn folder(dir: &Path, repository: &Repository) -> PathBuf {
    dir.join(ROOT).join(repository.as_str())
}

/// Fetches a blob into the first of its repositories; the others have the same file.
async fn put_blob(
    dir: &Path,
    digest: &Digest,
    blob: &SourceBlob,
    users: &BTreeSet<Repository>,
    client: &Client,
) -> Result<(), Error> {
    let mut paths = users.iter().map(|it| RepositoryTree::blob(dir, it, digest));
    let (Some(first), Some(origin)) = (paths.next(), blob.sources.first()) else {
        return Ok(());
    };
    let failed = |path: &Path| {
        let doing = format!("writing {}", path.display());
        move |e| Error::internal(doing, e)
    };
    if !is_whole(&first, blob.size) {
        let above = first.parent().unwrap_or(dir);
        fs::create_dir_all(above).map_err(failed(above))?;
        let part = part_of(above).map_err(failed(above))?;
        let file = part.as_file().try_clone().map_err(failed(&first))?;
        let mut file = tokio::fs::File::from_std(file);
        let (reference, wanted) = (origin.reference(digest), blob.descriptor(digest));
        client.pull_blob(&reference, &wanted, &mut file).await?;
        // A file with its name counts as complete in the next run, so its content is durable first.
        file.sync_all().await.map_err(failed(&first))?;
        part.persist(&first).map_err(|e| failed(&first)(e.error))?;
    }
    for other in paths.filter(|other| !is_whole(other, blob.size)) {
        let above = other.parent().unwrap_or(dir);
        fs::create_dir_all(above).map_err(failed(above))?;
        fs::hard_link(&first, &other).map_err(failed(&other))?;
    }
    Ok(())
}

/// A file that gets its name, and becomes readable for all users, when it is complete.
fn part_of(folder: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".part-")
        .permissions(Permissions::from_mode(FILE_MODE))
        .tempfile_in(folder)
}

/// A file with that size under its final name is complete.
fn is_whole(path: &Path, size: u64) -> bool {
    fs::metadata(path).is_ok_and(|file| file.len() == size)
}

fn put_manifests(folder: &Path, image: &ResolvedImage, content: &ImageContent) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for manifest in content.manifests_of(&image.digest) {
        let part = part_of(folder)?;
        fs::write(part.path(), &manifest.bytes)?;
        part.as_file().sync_all()?;
        part.persist(folder.join(manifest.digest.to_string()))?;
    }
    let tag = folder.join(image.wanted.tag.as_str());
    match fs::remove_file(&tag) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    symlink(image.digest.to_string(), tag)
}
