//! What is where, so that no answer depends on how much there is: tags, manifests, blobs and referrers of every
//! repository, in one file beside the content.
//!
//! The folder is the truth; all of this can be read from it again. A change becomes visible when its transaction
//! is committed, and durable when the journal has it: the file itself is synced at checkpoints only.

use std::io;
use std::ops::Bound;
use std::path::Path;

use bytes::Bytes;
use redb::{
    Database, Durability, ReadTransaction, ReadableDatabase as _, ReadableTable, Table,
    TableDefinition, WriteTransaction,
};

use super::change::{Change, Name, Order};
use super::rows::{ManifestRow, digest, key};
use crate::store::{Referrer, Result, StoreError};
use crate::{Digest, Manifest, Repository, Tag};

/// Another layout of the tables is another version: the index is then made anew.
const VERSION: u64 = 1;
/// Units: bytes. What is not in it comes from the system's own cache.
const CACHE_BYTES: usize = 4 << 20;
const DOING: &str = "using the index of the storage folder";

type Row = [u8];
/// `version`: that of the tables, once they hold everything. `as_of`: when the index and the folder were the same.
/// Units: nanoseconds since 1970.
const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
/// Those that have or had a manifest.
const REPOSITORIES: TableDefinition<&str, ()> = TableDefinition::new("repositories");
/// Repository, tag: the digest.
const TAGS: TableDefinition<(&str, &str), &Row> = TableDefinition::new("tags");
/// Repository, digest: see [`ManifestRow`].
const MANIFESTS: TableDefinition<(&str, &Row), &Row> = TableDefinition::new("manifests");
/// Repository, digest: size, and the canonical digest where the one of the key is another one.
const BLOBS: TableDefinition<(&str, &Row), (u64, &Row)> = TableDefinition::new("blobs");
/// Repository, subject, digest: see [`Referrer`], as JSON.
const REFERRERS: TableDefinition<(&str, &Row, &Row), &Row> = TableDefinition::new("referrers");

/// The index in its file.
#[derive(Debug)]
pub(super) struct Index {
    database: Database,
}

/// One state of everything; later changes do not show.
pub(super) struct Snapshot(ReadTransaction);

/// Changes that become visible together.
pub(super) struct Update(WriteTransaction);

/// The tables of an update.
pub(super) struct Tables<'u> {
    repositories: Table<'u, &'static str, ()>,
    tags: Table<'u, (&'static str, &'static str), &'static Row>,
    manifests: Table<'u, (&'static str, &'static Row), &'static Row>,
    blobs: Table<'u, (&'static str, &'static Row), (u64, &'static Row)>,
    referrers: Table<'u, (&'static str, &'static Row, &'static Row), &'static Row>,
}

/// A blob that a repository has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Blob {
    /// Its SHA-256, whatever it was asked by.
    pub(super) canonical: Digest,
    /// Units: bytes.
    pub(super) size: u64,
}

impl Index {
    /// Opens the index in `file`; whether it holds everything, or has to be filled from the folder.
    pub(super) fn open(file: &Path) -> Result<(Self, bool)> {
        let database = match Self::database(file) {
            Ok(database) => database,
            // The folder is the truth: a damaged index is nothing to complain to anybody about.
            Err(error) => {
                tracing::warn!(%error, "the index cannot be used and is made anew");
                super::durable::remove_file(file).map_err(StoreError::io(DOING))?;
                Self::database(file).map_err(failed)?
            }
        };
        let index = Self { database };
        let is_whole = index.meta("version")? == Some(VERSION);
        if !is_whole {
            index.clear()?;
        }
        Ok((index, is_whole))
    }

    fn database(file: &Path) -> std::result::Result<Database, redb::DatabaseError> {
        Database::builder().set_cache_size(CACHE_BYTES).create(file)
    }

    fn clear(&self) -> Result<()> {
        let update = self.update()?;
        let transaction = &update.0;
        transaction.delete_table(META).map_err(failed)?;
        transaction.delete_table(REPOSITORIES).map_err(failed)?;
        transaction.delete_table(TAGS).map_err(failed)?;
        transaction.delete_table(MANIFESTS).map_err(failed)?;
        transaction.delete_table(BLOBS).map_err(failed)?;
        transaction.delete_table(REFERRERS).map_err(failed)?;
        drop(update.tables()?);
        transaction.open_table(META).map(drop).map_err(failed)?;
        update.commit()
    }

    fn meta(&self, name: &str) -> Result<Option<u64>> {
        let transaction = self.database.begin_read().map_err(failed)?;
        let table = match transaction.open_table(META) {
            Ok(table) => table,
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let value = table.get(name).map_err(failed)?;
        Ok(value.map(|value| value.value()))
    }

    /// The time up to which changes in the folder are in the index. Units: nanoseconds since 1970.
    pub(super) fn as_of(&self) -> Result<u64> {
        Ok(self.meta("as_of")?.unwrap_or(0))
    }

    /// What is visible now.
    pub(super) fn snapshot(&self) -> Result<Snapshot> {
        self.database.begin_read().map(Snapshot).map_err(failed)
    }

    /// Begins to change things; one at a time.
    pub(super) fn update(&self) -> Result<Update> {
        let mut transaction = self.database.begin_write().map_err(failed)?;
        transaction
            .set_durability(Durability::None)
            .map_err(failed)?;
        Ok(Update(transaction))
    }

    /// Makes everything durable; `as_of` as in [`Index::as_of`]. From now on the index holds everything.
    pub(super) fn sync(&self, as_of: u64) -> Result<()> {
        let mut transaction = self.database.begin_write().map_err(failed)?;
        // Without it, opening after a crash would take the longer the more there is.
        transaction.set_quick_repair(true);
        {
            let mut meta = transaction.open_table(META).map_err(failed)?;
            meta.insert("version", VERSION).map_err(failed)?;
            meta.insert("as_of", as_of).map_err(failed)?;
        }
        transaction.commit().map_err(failed)
    }
}

impl Snapshot {
    /// The digest that a tag points at.
    pub(super) fn tag(&self, repository: &Repository, tag: &Tag) -> Result<Option<Digest>> {
        let tags = self.0.open_table(TAGS).map_err(failed)?;
        let found = tags
            .get((repository.as_str(), tag.as_str()))
            .map_err(failed)?;
        found.map(|found| digest(found.value())).transpose()
    }

    /// A manifest of a repository.
    pub(super) fn manifest(
        &self,
        repository: &Repository,
        digest: &Digest,
    ) -> Result<Option<ManifestRow>> {
        let manifests = self.0.open_table(MANIFESTS).map_err(failed)?;
        manifest_in(&manifests, repository, digest)
    }

    /// A blob of a repository.
    pub(super) fn blob(&self, repository: &Repository, digest: &Digest) -> Result<Option<Blob>> {
        let blobs = self.0.open_table(BLOBS).map_err(failed)?;
        blob_in(&blobs, repository, digest)
    }

    /// Up to `limit` tags after `after`, sorted by bytes. Nothing: there is no such repository.
    pub(super) fn tags(
        &self,
        repository: &Repository,
        after: &str,
        limit: usize,
    ) -> Result<Option<Vec<Tag>>> {
        let repositories = self.0.open_table(REPOSITORIES).map_err(failed)?;
        if repositories
            .get(repository.as_str())
            .map_err(failed)?
            .is_none()
        {
            return Ok(None);
        }
        let tags = self.0.open_table(TAGS).map_err(failed)?;
        tags_in(&tags, repository, after, limit).map(Some)
    }

    /// Up to `limit` repositories after `after`, sorted by bytes.
    pub(super) fn repositories(&self, after: &str, limit: usize) -> Result<Vec<Repository>> {
        let repositories = self.0.open_table(REPOSITORIES).map_err(failed)?;
        let range = (Bound::Excluded(after), Bound::Unbounded);
        let mut found = Vec::new();
        for row in repositories
            .range::<&str>(range)
            .map_err(failed)?
            .take(limit)
        {
            let (name, _) = row.map_err(failed)?;
            found.push(name.value().parse().map_err(damaged)?);
        }
        Ok(found)
    }

    /// The manifests of a repository that refer to `subject`, sorted by digest.
    pub(super) fn referrers(
        &self,
        repository: &Repository,
        subject: &Digest,
    ) -> Result<Vec<Referrer>> {
        let referrers = self.0.open_table(REFERRERS).map_err(failed)?;
        let (name, subject) = (repository.as_str(), key(subject));
        let mut found = Vec::new();
        for row in referrers
            .range((name, &*subject, [].as_slice())..)
            .map_err(failed)?
        {
            let (place, value) = row.map_err(failed)?;
            let (its_name, its_subject, _) = place.value();
            if its_name != name || its_subject != &*subject {
                break;
            }
            found.push(serde_json::from_slice(value.value()).map_err(damaged)?);
        }
        Ok(found)
    }
}

impl Update {
    /// What can be changed.
    pub(super) fn tables(&self) -> Result<Tables<'_>> {
        Ok(Tables {
            repositories: self.0.open_table(REPOSITORIES).map_err(failed)?,
            tags: self.0.open_table(TAGS).map_err(failed)?,
            manifests: self.0.open_table(MANIFESTS).map_err(failed)?,
            blobs: self.0.open_table(BLOBS).map_err(failed)?,
            referrers: self.0.open_table(REFERRERS).map_err(failed)?,
        })
    }

    /// Makes all changes visible. Without it, none was made.
    pub(super) fn commit(self) -> Result<()> {
        self.0.commit().map_err(failed)
    }
}

impl Tables<'_> {
    /// Whether a change can be made now; what it takes along is written into it.
    ///
    /// Errors: what it changes is not there, or what it needs.
    pub(super) fn check(&self, order: &mut Order) -> Result<()> {
        match &mut order.change {
            Change::AddBlob { .. } => Ok(()),
            Change::RemoveBlob { repository, blob } => {
                let asked = blob.canonical.clone();
                let found = blob_in(&self.blobs, repository, &asked)?
                    .ok_or_else(|| StoreError::UnknownBlob(asked.clone()))?;
                *blob = Name::new(found.canonical, &asked);
                Ok(())
            }
            Change::AddManifest { repository, .. } => {
                let manifest = parsed(order.content.as_ref())?;
                self.check_content(repository, &manifest)
            }
            Change::RemoveManifest {
                repository,
                manifest,
                tags,
            } => {
                let asked = manifest.canonical.clone();
                let found = manifest_in(&self.manifests, repository, &asked)?
                    .ok_or_else(|| StoreError::UnknownManifest(asked.to_string()))?;
                *tags = self.tags_at(repository, &found.canonical)?;
                *manifest = Name::new(found.canonical, &asked);
                Ok(())
            }
            Change::RemoveTag { repository, tag } => self
                .tags
                .get((repository.as_str(), tag.as_str()))
                .map_err(failed)?
                .ok_or_else(|| StoreError::UnknownManifest(tag.to_string()))
                .map(drop),
        }
    }

    fn check_content(&self, repository: &Repository, manifest: &Manifest) -> Result<()> {
        let mut missing = Vec::new();
        for digest in manifest.required_blobs() {
            if blob_in(&self.blobs, repository, digest)?.is_none() {
                missing.push(digest.clone());
            }
        }
        for digest in manifest.required_manifests() {
            if manifest_in(&self.manifests, repository, digest)?.is_none() {
                missing.push(digest.clone());
            }
        }
        if missing.is_empty() {
            Ok(())
        } else {
            Err(StoreError::MissingContent(missing))
        }
    }

    fn tags_at(&self, repository: &Repository, digest: &Digest) -> Result<Vec<Tag>> {
        let key = key(digest);
        let mut found = Vec::new();
        for tag in tags_in(&self.tags, repository, "", usize::MAX)? {
            let at = self
                .tags
                .get((repository.as_str(), tag.as_str()))
                .map_err(failed)?;
            if at.is_some_and(|at| at.value() == &*key) {
                found.push(tag);
            }
        }
        Ok(found)
    }

    /// Makes a change, which may have been made before.
    pub(super) fn apply(&mut self, order: &Order) -> Result<()> {
        match &order.change {
            Change::AddBlob {
                repository,
                blob,
                size,
                ..
            } => self.add_blob(repository, blob, *size),
            Change::RemoveBlob { repository, blob } => {
                for digest in blob.digests() {
                    let place = (repository.as_str(), &*key(digest));
                    self.blobs.remove(place).map_err(failed)?;
                }
                Ok(())
            }
            Change::AddManifest {
                repository,
                manifest: name,
                tags,
            } => {
                let manifest = parsed(order.content.as_ref())?;
                self.add_manifest(repository, name, &manifest)?;
                tags.iter()
                    .try_for_each(|tag| self.point(repository, tag, &name.canonical))
            }
            Change::RemoveManifest {
                repository,
                manifest,
                tags,
            } => {
                tags.iter()
                    .try_for_each(|tag| self.remove_tag(repository, tag))?;
                self.remove_manifest(repository, manifest)
            }
            Change::RemoveTag { repository, tag } => self.remove_tag(repository, tag),
        }
    }

    /// A blob under both of its names.
    pub(super) fn add_blob(
        &mut self,
        repository: &Repository,
        blob: &Name,
        size: u64,
    ) -> Result<()> {
        let canonical = key(&blob.canonical);
        for digest in blob.digests() {
            let of_other_name: &Row = if *digest == blob.canonical {
                &[]
            } else {
                &canonical
            };
            let place = (repository.as_str(), &*key(digest));
            self.blobs
                .insert(place, (size, of_other_name))
                .map_err(failed)?;
        }
        Ok(())
    }

    /// A manifest under both of its names, with what it refers to.
    pub(super) fn add_manifest(
        &mut self,
        repository: &Repository,
        name: &Name,
        manifest: &Manifest,
    ) -> Result<()> {
        self.add_repository(repository)?;
        let row = ManifestRow::of(manifest).encode();
        for digest in name.digests() {
            let place = (repository.as_str(), &*key(digest));
            self.manifests
                .insert(place, row.as_slice())
                .map_err(failed)?;
        }
        if let Some(subject) = &manifest.subject {
            let place = (
                repository.as_str(),
                &*key(&subject.digest),
                &*key(&name.canonical),
            );
            let text = serde_json::to_vec(&Referrer::of(manifest, name.told())).map_err(damaged)?;
            self.referrers
                .insert(place, text.as_slice())
                .map_err(failed)?;
        }
        Ok(())
    }

    /// A repository, though it be empty.
    pub(super) fn add_repository(&mut self, repository: &Repository) -> Result<()> {
        self.repositories
            .insert(repository.as_str(), ())
            .map(drop)
            .map_err(failed)
    }

    /// Points a tag at a manifest.
    pub(super) fn point(&mut self, repository: &Repository, tag: &Tag, at: &Digest) -> Result<()> {
        self.tags
            .insert((repository.as_str(), tag.as_str()), &*key(at))
            .map(drop)
            .map_err(failed)
    }

    fn remove_tag(&mut self, repository: &Repository, tag: &Tag) -> Result<()> {
        self.tags
            .remove((repository.as_str(), tag.as_str()))
            .map(drop)
            .map_err(failed)
    }

    fn remove_manifest(&mut self, repository: &Repository, name: &Name) -> Result<()> {
        if let Some(row) = manifest_in(&self.manifests, repository, &name.canonical)?
            && let Some(subject) = row.subject
        {
            let place = (repository.as_str(), &*key(&subject), &*key(&name.canonical));
            self.referrers.remove(place).map_err(failed)?;
        }
        for digest in name.digests() {
            let place = (repository.as_str(), &*key(digest));
            self.manifests.remove(place).map_err(failed)?;
        }
        Ok(())
    }

    /// Forgets all of a repository.
    pub(super) fn forget(&mut self, repository: &Repository) -> Result<()> {
        let name = repository.as_str();
        // No other name lies between.
        let next = format!("{name}\0");
        let next = next.as_str();
        let first: &Row = &[];
        self.repositories.remove(name).map_err(failed)?;
        self.tags
            .retain_in((name, "")..(next, ""), |_, _| false)
            .map_err(failed)?;
        self.manifests
            .retain_in((name, first)..(next, first), |_, _| false)
            .map_err(failed)?;
        self.blobs
            .retain_in((name, first)..(next, first), |_, _| false)
            .map_err(failed)?;
        self.referrers
            .retain_in((name, first, first)..(next, first, first), |_, _| false)
            .map_err(failed)
    }
}

fn manifest_in(
    manifests: &impl ReadableTable<(&'static str, &'static Row), &'static Row>,
    repository: &Repository,
    digest: &Digest,
) -> Result<Option<ManifestRow>> {
    let name = repository.as_str();
    let asked = key(digest);
    let Some(row) = manifests.get((name, &*asked)).map_err(failed)? else {
        return Ok(None);
    };
    let row = ManifestRow::decode(row.value())?;
    // The other name counts as long as the canonical one is there.
    let canonical = key(&row.canonical);
    if canonical != asked
        && manifests
            .get((name, &*canonical))
            .map_err(failed)?
            .is_none()
    {
        return Ok(None);
    }
    Ok(Some(row))
}

fn blob_in(
    blobs: &impl ReadableTable<(&'static str, &'static Row), (u64, &'static Row)>,
    repository: &Repository,
    asked: &Digest,
) -> Result<Option<Blob>> {
    let name = repository.as_str();
    let Some(row) = blobs.get((name, &*key(asked))).map_err(failed)? else {
        return Ok(None);
    };
    let (size, of_other_name) = row.value();
    if of_other_name.is_empty() {
        let canonical = asked.clone();
        return Ok(Some(Blob { canonical, size }));
    }
    if blobs.get((name, of_other_name)).map_err(failed)?.is_none() {
        return Ok(None);
    }
    let canonical = digest(of_other_name)?;
    Ok(Some(Blob { canonical, size }))
}

fn tags_in(
    tags: &impl ReadableTable<(&'static str, &'static str), &'static Row>,
    repository: &Repository,
    after: &str,
    limit: usize,
) -> Result<Vec<Tag>> {
    let name = repository.as_str();
    let range = (Bound::Excluded((name, after)), Bound::Unbounded);
    let mut found = Vec::new();
    for row in tags
        .range::<(&str, &str)>(range)
        .map_err(failed)?
        .take(limit)
    {
        let (place, _) = row.map_err(failed)?;
        let (its_name, tag) = place.value();
        if its_name != name {
            break;
        }
        found.push(tag.parse().map_err(damaged)?);
    }
    Ok(found)
}

fn parsed(content: Option<&Bytes>) -> Result<Manifest> {
    let content = content.cloned().unwrap_or_default();
    Manifest::parse(content, None).map_err(damaged)
}

fn failed(error: impl Into<redb::Error>) -> StoreError {
    let error = match error.into() {
        redb::Error::Io(error) => error,
        error => io::Error::other(error),
    };
    StoreError::io(DOING)(error)
}

pub(super) fn damaged(why: impl std::fmt::Display) -> StoreError {
    StoreError::Damaged {
        what: "the index of the storage folder".to_owned(),
        why: why.to_string(),
    }
}
