//! The derived index: tags, manifests, blobs and referrers of all repositories in one database file, so that queries
//! do not slow down as the registry grows.
//!
//! The folder is the truth, from which the index can be rebuilt. A change is visible once its transaction is committed,
//! and durable once it is journalled: the file is synced by checkpoints only.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use redb::{
    Database, Durability, ReadTransaction, ReadableDatabase as _, TableDefinition, WriteTransaction,
};

use super::change::ContentName;
use super::index_file::IndexFile;
use super::queries::{
    DOING, IndexedBlob, RowBytes, blob_in, failed, is_needed, linked_manifest, manifest_in, tags_in,
};
use super::rows::{DANGLING, ManifestRow, damaged, digest, key};
use super::tables::{Tables, bounds};
use crate::{Result, StoreError, Usage};
use oci::Referrer;
use oci::{Algorithm, Digest, Repository, Tag};

/// Schema version: an index of another version is rebuilt.
const VERSION: u64 = 2;
/// Units: bytes. redb's cache; the rest is in the page cache.
const CACHE_BYTES: usize = 4 << 20;

/// `version`: that of the tables.
const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
/// Repositories that have or had a manifest.
const REPOSITORIES: TableDefinition<&str, ()> = TableDefinition::new("repositories");
/// Repository, tag: the digest.
const TAGS: TableDefinition<(&str, &str), &RowBytes> = TableDefinition::new("tags");
/// Repository, digest: see [`ManifestRow`].
pub(super) const MANIFESTS: TableDefinition<(&str, &RowBytes), &RowBytes> =
    TableDefinition::new("manifests");
/// Repository, digest: size, and the canonical digest if the key is an alias.
pub(super) const BLOBS: TableDefinition<(&str, &RowBytes), (u64, &RowBytes)> =
    TableDefinition::new("blobs");
/// Repository, subject, digest: see [`Referrer`], as JSON.
pub(super) const REFERRERS: TableDefinition<(&str, &RowBytes, &RowBytes), &RowBytes> =
    TableDefinition::new("referrers");
/// Repository, digest, manifest: content that a manifest or an index needs, by the digest in its text.
pub(super) const NEEDS: TableDefinition<(&str, &RowBytes, &RowBytes), ()> =
    TableDefinition::new("needs");
/// Alias and canonical digest of a blob; never removed, since it stays true.
const ALIASES: TableDefinition<&RowBytes, &RowBytes> = TableDefinition::new("aliases");
/// Canonical digest, repository, kind: the holders of content.
pub(super) const USES: TableDefinition<(&RowBytes, &str, u8), ()> = TableDefinition::new("uses");

/// Repository: when changes by other programs were last found. Units: nanoseconds since 1970.
const ADOPTED: TableDefinition<&str, u64> = TableDefinition::new("adopted");
/// Canonical digest of content without a link: when it was found; 0 after the removal of its last link here. Units:
/// nanoseconds since 1970.
pub(super) const UNUSED: TableDefinition<&RowBytes, u64> = TableDefinition::new("unused");

/// Repository, orphaned manifest: when its index or subject was deleted here. Units: nanoseconds since 1970.
pub(super) const ORPHANS: TableDefinition<(&str, &RowBytes), u64> = TableDefinition::new("freed");

/// The index of a folder.
#[derive(Debug)]
pub(super) struct ContentIndex {
    path: PathBuf,
    opened: RwLock<Arc<OpenedIndex>>,
}

#[derive(Debug)]
struct OpenedIndex {
    database: Database,
    file: IndexFile,
}

/// A consistent read transaction.
pub(super) struct IndexSnapshot(pub(super) ReadTransaction);

/// A write transaction.
pub(super) struct Update(WriteTransaction);

impl ContentIndex {
    /// Opens the index in `file`; adoption adds missing rows. Without a writable medium, the index is kept in memory.
    pub(super) fn open(file: &Path, may_write: bool) -> Result<Self> {
        let opened = OpenedIndex::open(file, may_write)?;
        let index = Self {
            path: file.to_owned(),
            opened: RwLock::new(Arc::new(opened)),
        };
        if index.meta("version")? != Some(VERSION) {
            index.clear()?;
        }
        // Creates tables that an older release did not have.
        let update = index.update()?;
        drop(update.tables()?);
        update.commit()?;
        Ok(index)
    }

    /// Rebuilds the index by `fill` after a read error, which redb does not survive.
    pub(super) fn rebuild(&self, fill: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        tracing::warn!("the index cannot be read and is rebuilt");
        // Frozen first: the failed database must not write into the file that replaces its own.
        self.opened().file.freeze();
        super::staged::remove_file(&self.path).map_err(StoreError::io(DOING))?;
        let fresh = Self::open(&self.path, true)?;
        // Filled before it replaces the old one, so that readers never see a partial index.
        fill(&fresh)?;
        *self.opened.write().unwrap_or_else(PoisonError::into_inner) = fresh.opened();
        Ok(())
    }

    /// Whether [`Self::rebuild`] is required before anything else.
    pub(super) fn has_failed(&self) -> bool {
        self.opened().file.has_failed()
    }

    /// Whether a part of it is only in memory, until [`Self::sync`] succeeds.
    pub(super) fn is_frozen(&self) -> bool {
        self.opened().file.is_frozen()
    }

    fn opened(&self) -> Arc<OpenedIndex> {
        Arc::clone(&self.opened.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Removes all rows.
    pub(super) fn clear(&self) -> Result<()> {
        let update = self.update()?;
        let transaction = &update.0;
        transaction.delete_table(META).map_err(failed)?;
        transaction.delete_table(REPOSITORIES).map_err(failed)?;
        transaction.delete_table(TAGS).map_err(failed)?;
        transaction.delete_table(MANIFESTS).map_err(failed)?;
        transaction.delete_table(BLOBS).map_err(failed)?;
        transaction.delete_table(REFERRERS).map_err(failed)?;
        transaction.delete_table(NEEDS).map_err(failed)?;
        transaction.delete_table(ALIASES).map_err(failed)?;
        transaction.delete_table(USES).map_err(failed)?;
        transaction.delete_table(ADOPTED).map_err(failed)?;
        transaction.delete_table(UNUSED).map_err(failed)?;
        transaction.delete_table(ORPHANS).map_err(failed)?;
        drop(update.tables()?);
        transaction.open_table(META).map(drop).map_err(failed)?;
        update.commit()
    }

    fn meta(&self, name: &str) -> Result<Option<u64>> {
        let transaction = self.opened().database.begin_read().map_err(failed)?;
        let table = match transaction.open_table(META) {
            Ok(table) => table,
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let value = table.get(name).map_err(failed)?;
        Ok(value.map(|value| value.value()))
    }

    /// Starts a read transaction.
    pub(super) fn snapshot(&self) -> Result<IndexSnapshot> {
        self.opened()
            .database
            .begin_read()
            .map(IndexSnapshot)
            .map_err(failed)
    }

    /// Starts a write transaction, one at a time.
    pub(super) fn update(&self) -> Result<Update> {
        let mut transaction = self.opened().database.begin_write().map_err(failed)?;
        transaction
            .set_durability(Durability::None)
            .map_err(failed)?;
        Ok(Update(transaction))
    }

    /// Makes everything durable. A frozen file is replaced by a complete copy, by way of `temporary`.
    pub(super) fn sync(&self, temporary: &Path) -> Result<()> {
        self.commit_durably()?;
        // After the commit, so that the copy contains it.
        let thawed = self.opened().file.thaw(temporary);
        thawed.map_err(StoreError::io(DOING))
    }

    fn commit_durably(&self) -> Result<()> {
        let opened = self.opened();
        let mut transaction = opened.database.begin_write().map_err(failed)?;
        // Without it, opening after a crash would take longer the larger the index is.
        transaction.set_quick_repair(true);
        {
            let mut meta = transaction.open_table(META).map_err(failed)?;
            meta.insert("version", VERSION).map_err(failed)?;
        }
        transaction.commit().map_err(failed)
    }
}

impl OpenedIndex {
    fn open(path: &Path, may_write: bool) -> Result<Self> {
        let file = IndexFile::open(path, may_write);
        match Self::over(file.clone()) {
            Ok(opened) => Ok(opened),
            // The index is derived: a damaged one is rebuilt without an error.
            Err(error) => {
                tracing::warn!(%error, "the index cannot be used and is rebuilt");
                file.freeze();
                let file = match may_write.then(|| super::staged::remove_file(path)) {
                    Some(Ok(_)) => IndexFile::open(path, true),
                    _ => IndexFile::in_memory(path),
                };
                Self::over(file).map_err(failed)
            }
        }
    }

    fn over(file: IndexFile) -> std::result::Result<Self, redb::DatabaseError> {
        let mut builder = Database::builder();
        let database = builder
            .set_cache_size(CACHE_BYTES)
            .create_with_backend(file.clone())?;
        Ok(Self { database, file })
    }
}

impl IndexSnapshot {
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
    pub(super) fn blob(
        &self,
        repository: &Repository,
        digest: &Digest,
    ) -> Result<Option<IndexedBlob>> {
        let blobs = self.0.open_table(BLOBS).map_err(failed)?;
        blob_in(&blobs, repository, digest)
    }

    /// Up to `limit` tags after `after` with their digests, sorted by bytes; `None` for an unknown repository.
    pub(super) fn tags(
        &self,
        repository: &Repository,
        after: &str,
        limit: usize,
    ) -> Result<Option<Vec<(Tag, Digest)>>> {
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

    /// The tags of a repository that point at `manifests` under any of their digests, each with its SHA-256.
    pub(super) fn tags_at(
        &self,
        repository: &Repository,
        manifests: &BTreeSet<Digest>,
    ) -> Result<Vec<(Tag, Digest)>> {
        let tags = self.0.open_table(TAGS).map_err(failed)?;
        let rows = self.0.open_table(MANIFESTS).map_err(failed)?;
        let mut found = Vec::new();
        for (tag, at) in tags_in(&tags, repository, "", usize::MAX)? {
            let canonical = match at.algorithm() {
                Algorithm::Sha256 => Some(at),
                Algorithm::Sha512 => {
                    linked_manifest(&rows, repository, &at)?.map(|row| row.canonical)
                }
            };
            found.extend(
                canonical
                    .filter(|digest| manifests.contains(digest))
                    .map(|digest| (tag, digest)),
            );
        }
        Ok(found)
    }

    /// Usage of a repository.
    pub(super) fn usage(&self, repository: &Repository) -> Result<Usage> {
        let (name, next) = bounds(repository);
        let (first, next): (&RowBytes, &str) = (&[], &next);
        let mut usage = Usage::default();
        let tags = self.0.open_table(TAGS).map_err(failed)?;
        for row in tags.range((name, "")..(next, "")).map_err(failed)? {
            row.map_err(failed)?;
            usage.tags += 1;
        }
        let manifests = self.0.open_table(MANIFESTS).map_err(failed)?;
        for row in manifests
            .range((name, first)..(next, first))
            .map_err(failed)?
        {
            let (place, value) = row.map_err(failed)?;
            let row = ManifestRow::decode(value.value())?;
            if *place.value().1 == *key(&row.canonical) {
                usage.manifests += 1;
                usage.bytes += if row.size == DANGLING { 0 } else { row.size };
            }
        }
        let blobs = self.0.open_table(BLOBS).map_err(failed)?;
        for row in blobs.range((name, first)..(next, first)).map_err(failed)? {
            let (_, value) = row.map_err(failed)?;
            let (size, of_other_name) = value.value();
            if of_other_name.is_empty() && size != DANGLING {
                usage.bytes += size;
            }
        }
        Ok(usage)
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

impl IndexSnapshot {
    /// The blobs of a repository under each of their digests, and whether a manifest needs them under that digest.
    pub(super) fn blobs(&self, repository: &Repository) -> Result<Vec<(ContentName, bool)>> {
        let blobs = self.0.open_table(BLOBS).map_err(failed)?;
        let needs = self.0.open_table(NEEDS).map_err(failed)?;
        let name = repository.as_str();
        let mut found = Vec::new();
        for row in blobs.range((name, [].as_slice())..).map_err(failed)? {
            let (place, value) = row.map_err(failed)?;
            let (its_name, asked) = place.value();
            if its_name != name {
                break;
            }
            let (_, of_other_name) = value.value();
            let asked = digest(asked)?;
            let canonical = if of_other_name.is_empty() {
                asked.clone()
            } else {
                digest(of_other_name)?
            };
            let is_needed = is_needed(&needs, repository, &asked)?;
            found.push((ContentName::new(canonical, &asked), is_needed));
        }
        Ok(found)
    }

    /// The SHA-256 of an alias.
    pub(super) fn canonical(&self, alias: &Digest) -> Result<Option<Digest>> {
        let aliases = self.0.open_table(ALIASES).map_err(failed)?;
        let found = aliases.get(&*key(alias)).map_err(failed)?;
        found.map(|found| digest(found.value())).transpose()
    }

    /// Whether any repository has content.
    pub(super) fn is_used(&self, canonical: &Digest) -> Result<bool> {
        let uses = self.0.open_table(USES).map_err(failed)?;
        let canonical = key(canonical);
        let first = uses.range((&*canonical, "", 0)..).map_err(failed)?.next();
        let first = first.transpose().map_err(failed)?;
        Ok(first.is_some_and(|(place, _)| place.value().0 == &*canonical))
    }

    /// The first repository after `after` that has blobs.
    pub(super) fn next_with_blobs(&self, after: &str) -> Result<Option<Repository>> {
        let blobs = self.0.open_table(BLOBS).map_err(failed)?;
        let next = format!("{after}\0");
        let place = (next.as_str(), [].as_slice());
        let first = blobs.range(place..).map_err(failed)?.next();
        let first = first.transpose().map_err(failed)?;
        first
            .map(|(place, _)| place.value().0.parse().map_err(damaged))
            .transpose()
    }
}

impl IndexSnapshot {
    /// Whether a repository has or had a manifest.
    pub(super) fn is_listed(&self, repository: &Repository) -> Result<bool> {
        let repositories = self.0.open_table(REPOSITORIES).map_err(failed)?;
        let row = repositories.get(repository.as_str()).map_err(failed)?;
        Ok(row.is_some())
    }

    /// Whether the index has rows of a repository.
    pub(super) fn has(&self, repository: &Repository) -> Result<bool> {
        let blobs = self.0.open_table(BLOBS).map_err(failed)?;
        let (name, next) = bounds(repository);
        let (first, next): (&RowBytes, &str) = (&[], &next);
        let mut rows = blobs.range((name, first)..(next, first)).map_err(failed)?;
        Ok(rows.next().is_some() || self.is_listed(repository)?)
    }

    /// The first repository after `after` with any row.
    pub(super) fn next_known(&self, after: &str) -> Result<Option<Repository>> {
        let listed = self.repositories(after, 1)?.pop();
        let holding = self.next_with_blobs(after)?;
        Ok(listed.into_iter().chain(holding).min())
    }

    /// When changes of a repository by other programs were last found, 0 for never. Units: nanoseconds since 1970.
    pub(super) fn adopted_at(&self, repository: &Repository) -> Result<u64> {
        let adopted = self.0.open_table(ADOPTED).map_err(failed)?;
        let at = adopted.get(repository.as_str()).map_err(failed)?;
        Ok(at.map_or(0, |at| at.value()))
    }
}

impl Update {
    /// The tables of the transaction.
    pub(super) fn tables(&self) -> Result<Tables<'_>> {
        Ok(Tables {
            repositories: self.0.open_table(REPOSITORIES).map_err(failed)?,
            tags: self.0.open_table(TAGS).map_err(failed)?,
            manifests: self.0.open_table(MANIFESTS).map_err(failed)?,
            blobs: self.0.open_table(BLOBS).map_err(failed)?,
            referrers: self.0.open_table(REFERRERS).map_err(failed)?,
            needs: self.0.open_table(NEEDS).map_err(failed)?,
            aliases: self.0.open_table(ALIASES).map_err(failed)?,
            uses: self.0.open_table(USES).map_err(failed)?,
            adopted: self.0.open_table(ADOPTED).map_err(failed)?,
            unused: self.0.open_table(UNUSED).map_err(failed)?,
            orphans: self.0.open_table(ORPHANS).map_err(failed)?,
        })
    }

    /// Commits all changes; without it, none is made.
    pub(super) fn commit(self) -> Result<()> {
        self.0.commit().map_err(failed)
    }
}
