//! When which manifest of an upstream was last used, in a file of its own: without a record nothing expires.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use blob_store::StoreError;
use model::time::Timestamp;
use oci::{Digest, Repository};
use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};
use service::Error;

/// Repository, digest: when it was last used. Units: seconds since 1970.
const USED: TableDefinition<(&str, &str), i64> = TableDefinition::new("used");
/// Units: bytes. Cache of the database; the system's page cache does the rest.
const CACHE_BYTES: usize = 1 << 20;
/// Uses that are remembered before they are written down.
const TOUCHED_LIMIT: usize = 10_000;
/// Below the storage folder.
const FILE: &str = ".atoll/upstreams.redb";

type Touched = HashMap<(Repository, Digest), i64>;

#[derive(Debug, Clone)]
pub(super) struct Ages(Arc<AgesInner>);

#[derive(Debug)]
struct AgesInner {
    database: Database,
    touched: Mutex<Touched>,
}

impl Ages {
    /// The record below `root`. It drops entries of repositories for which `is_copy` is false: there, content may have
    /// been pushed since.
    ///
    /// Errors: the file cannot be used.
    pub(super) async fn open(
        root: &Path,
        is_copy: impl Fn(&Repository) -> bool + Send + 'static,
    ) -> Result<Self, Error> {
        let path = root.join(FILE);
        let doing = format!("opening {}", path.display());
        let opened = tokio::task::spawn_blocking(move || {
            let database = database(&path)?;
            let change = database.begin_write()?;
            change.open_table(USED)?.retain(|(name, _), _| {
                let name = name.parse();
                name.is_ok_and(|name| is_copy(&name))
            })?;
            change.commit()?;
            Ok::<_, redb::Error>(database)
        });
        let database = match opened.await {
            Ok(Ok(database)) => database,
            Ok(Err(error)) => return Err(Error::new(doing, error)),
            Err(error) => return Err(Error::new(doing, error)),
        };
        Ok(Self(Arc::new(AgesInner {
            database,
            touched: Mutex::default(),
        })))
    }

    /// Forgets everything below `root`. Errors: the file cannot be removed.
    pub(super) async fn remove(root: &Path) -> Result<(), Error> {
        let path = root.join(FILE);
        match tokio::fs::remove_file(&path).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::new(format!("removing {}", path.display()), error))
            }
            _ => Ok(()),
        }
    }

    /// Writes down that a manifest is about to be kept. Durable when it returns.
    pub(super) async fn expect(
        &self,
        name: &Repository,
        digest: &Digest,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (name, digest) = (name.clone(), digest.to_string());
        let work = move |inner: &AgesInner| {
            let change = inner.database.begin_write()?;
            let place = (name.as_str(), digest.as_str());
            change.open_table(USED)?.insert(place, now.timestamp())?;
            change.commit()?;
            Ok(())
        };
        self.run(work).await
    }

    /// Remembers that a manifest was used, if it is one that was expected.
    pub(super) fn touch(&self, name: &Repository, digest: &Digest, now: Timestamp) {
        let mut touched = self
            .0
            .touched
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Beyond that, some may go a little early.
        if touched.len() < TOUCHED_LIMIT {
            touched.insert((name.clone(), digest.clone()), now.timestamp());
        }
    }

    /// Writes the last uses.
    pub(super) async fn flush(&self) {
        let touched = std::mem::take(
            &mut *self
                .0
                .touched
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        if touched.is_empty() {
            return;
        }
        let work = move |inner: &AgesInner| {
            let change = inner.database.begin_write()?;
            {
                let mut table = change.open_table(USED)?;
                for ((name, digest), used) in &touched {
                    let digest = digest.to_string();
                    let place = (name.as_str(), digest.as_str());
                    let is_older = table.get(place)?.is_some_and(|row| row.value() < *used);
                    if is_older {
                        table.insert(place, used)?;
                    }
                }
            }
            change.commit()?;
            Ok(())
        };
        if let Err(error) = self.run(work).await {
            let error = model::error::chain(&error);
            tracing::error!(error, "last uses of cached content not written");
        }
    }

    /// Up to `limit` manifests that were not used since `before`.
    pub(super) async fn unused(
        &self,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<(Repository, Digest)>, StoreError> {
        let work = move |inner: &AgesInner| {
            let table = inner.database.begin_read()?.open_table(USED)?;
            let mut found = Vec::new();
            for row in table.iter()? {
                let (place, used) = row?;
                let (name, digest) = place.value();
                if used.value() < before.timestamp()
                    && let (Ok(name), Ok(digest)) = (name.parse(), digest.parse())
                {
                    found.push((name, digest));
                }
                if found.len() >= limit {
                    break;
                }
            }
            Ok(found)
        };
        self.run(work).await
    }

    /// Forgets manifests.
    pub(super) async fn forget(&self, gone: Vec<(Repository, Digest)>) -> Result<(), StoreError> {
        let work = move |inner: &AgesInner| {
            let change = inner.database.begin_write()?;
            {
                let mut table = change.open_table(USED)?;
                for (name, digest) in &gone {
                    let digest = digest.to_string();
                    table.remove((name.as_str(), digest.as_str()))?;
                }
            }
            change.commit()?;
            Ok(())
        };
        self.run(work).await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&AgesInner) -> Result<T, redb::Error> + Send + 'static,
    ) -> Result<T, StoreError> {
        let inner = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || work(&inner)).await?;
        done.map_err(|error| StoreError::Io {
            doing: "writing the last uses of cached content",
            source: std::io::Error::other(error),
        })
    }
}

fn database(path: &Path) -> Result<Database, redb::Error> {
    durable::create_parent(path)?;
    let open = || Database::builder().set_cache_size(CACHE_BYTES).create(path);
    match open() {
        // Content is there without it, only for ever.
        Err(redb::DatabaseError::Storage(error)) => {
            tracing::warn!(%error, "last uses of cached content lost");
            std::fs::remove_file(path)?;
            Ok(open()?)
        }
        opened => Ok(opened?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use faults::{Campaign, DONE, FOLDER};

    #[tokio::test]
    async fn only_what_was_expected_grows_old() {
        let dir = tempfile::tempdir().unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let (early, late) = (at("2026-01-01T00:00:00Z"), at("2026-01-02T00:00:00Z"));
        let name: Repository = "a/b".parse().unwrap();
        let [kept, old, pushed] = [b"1", b"2", b"3"].map(|content| Digest::sha256(content));
        {
            let ages = Ages::open(dir.path(), |_| true).await.unwrap();
            for digest in [&kept, &old] {
                ages.expect(&name, digest, early).await.unwrap();
            }
            for digest in [&kept, &pushed] {
                ages.touch(&name, digest, late);
            }
            ages.flush().await;
        }
        let ages = Ages::open(dir.path(), |_| true).await.unwrap();
        assert!(ages.unused(early, 9).await.unwrap().is_empty());
        let unused = ages.unused(late, 9).await.unwrap();
        assert_eq!(unused, [(name.clone(), old)]);
        ages.forget(unused).await.unwrap();
        assert!(ages.unused(late, 9).await.unwrap().is_empty());
        let after = at("2026-01-03T00:00:00Z");
        assert_eq!(ages.unused(after, 9).await.unwrap(), [(name, kept)]);
        drop(ages);
        let ages = Ages::open(dir.path(), |_| false).await.unwrap();
        assert!(ages.unused(after, 9).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_damaged_record_is_begun_anew() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(FILE);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, vec![7; 10_000]).unwrap();
        Ages::open(dir.path(), |_| true).await.unwrap();
        Ages::remove(dir.path()).await.unwrap();
        assert!(!file.exists());
        Ages::remove(dir.path()).await.unwrap();
    }

    /// The process of the next test.
    #[test]
    fn driver() {
        let Some(folder) = std::env::var_os(FOLDER) else {
            return;
        };
        database(&Path::new(&folder).join(FILE)).unwrap();
        println!("{DONE}");
        std::process::abort();
    }

    #[test]
    fn its_folders_outlive_a_power_failure() {
        let campaign = Campaign {
            driver: "upstream::ages::tests::driver",
            state: |_: &Path| String::new(),
            sample: None,
            ends_by_abort: true,
        };
        let unsynced = campaign.unsynced_folders().unwrap();
        assert!(unsynced.is_empty(), "{unsynced:?}");
    }
}
