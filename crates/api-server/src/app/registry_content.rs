//! Use cases of the registry of the site: its content is on offer, unless the settings list something else.
//!
//! One replica reads at a time and stores its reading; all offer the stored one, also with the registry away.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use doctor::ContentReport;
use model::Error;
use model::time::Timestamp;
use preparation::RegistryAccess;
use registry_content::{ContentReader, EarlierReadings, RegistryContent};
use sqlx::Connection as _;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::offer::CurrentOffer;
use crate::carry_in::PublicationTarget;
use crate::db::registry_content::{self as rows, StoredContent};
use crate::db::{Database, added_images, locks, tx};
use crate::settings::Settings;

/// Changed repositories that are read one by one; with more, the whole registry is read.
pub(crate) const CHANGED_REPOSITORIES: usize = 1_000;
/// Timeout of closing the session of the lock; PostgreSQL also detects a lost one.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Parts of the registry that have to be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct UnreadContent {
    /// All repositories; none is left out because of an earlier reading.
    everything: bool,
    /// Those that may have changed without a notification.
    unreported: bool,
    repositories: BTreeSet<String>,
}

impl UnreadContent {
    fn everything() -> Self {
        Self {
            everything: true,
            ..Self::default()
        }
    }

    /// Adds parts; more repositories than [`CHANGED_REPOSITORIES`] are everything.
    fn add(&mut self, more: Self) {
        self.everything |= more.everything;
        self.unreported |= more.unreported;
        self.repositories.extend(more.repositories);
        if self.repositories.len() > CHANGED_REPOSITORIES {
            *self = Self::everything();
        }
    }
}

/// The content of the registry.
#[derive(Debug)]
pub(crate) struct SiteContent {
    db: Database,
    offer: Arc<CurrentOffer>,
    /// None: there is no registry.
    source: Option<PublicationTarget>,
    unread: Mutex<UnreadContent>,
    due: Notify,
    earlier: tokio::sync::Mutex<EarlierReadings>,
    /// Time of the reading on offer.
    followed: Mutex<Option<Timestamp>>,
    /// Folder of a reading: one reads at a time, also of the replicas that share it.
    scratch: PathBuf,
}

impl SiteContent {
    /// By the settings; certificates and mirrors are those of `access`.
    pub(super) fn new(
        db: Database,
        offer: Arc<CurrentOffer>,
        settings: &Settings,
        access: &RegistryAccess,
    ) -> Self {
        let name = settings.content_registry.clone();
        let name = name.or_else(|| settings.archives_registry.clone());
        let source = name.map(|name| {
            let logins = settings.archives_registry_auth_file.clone();
            PublicationTarget::new(name.0, logins, access)
        });
        if source.is_none() {
            offer.set_content(&RegistryContent::default());
        }
        Self {
            db,
            offer,
            source,
            unread: Mutex::new(UnreadContent::everything()),
            due: Notify::new(),
            earlier: tokio::sync::Mutex::default(),
            followed: Mutex::default(),
            scratch: settings.work_dir.join("registry-content"),
        }
    }

    fn unread(&self) -> MutexGuard<'_, UnreadContent> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn followed(&self) -> MutexGuard<'_, Option<Timestamp>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is a registry to read.
    pub(crate) fn is_read(&self) -> bool {
        self.source.is_some()
    }

    /// Whether its content is on offer.
    pub(crate) fn is_known(&self) -> bool {
        self.offer.has_content()
    }

    /// Waits until a part of the registry has to be read.
    pub(crate) async fn due(&self) {
        self.due.notified().await;
    }

    /// The whole registry has to be read.
    pub(crate) fn has_changed(&self) {
        self.unread().add(UnreadContent::everything());
        self.due.notify_one();
    }

    /// It may have changed without a notification.
    pub(crate) fn may_have_changed(&self) {
        self.unread().add(UnreadContent {
            unreported: true,
            ..UnreadContent::default()
        });
    }

    /// These repositories have changed.
    pub(crate) fn have_changed(&self, repositories: impl Iterator<Item = String>) {
        self.unread().add(UnreadContent {
            repositories: repositories.take(CHANGED_REPOSITORIES + 1).collect(),
            ..UnreadContent::default()
        });
        self.due.notify_one();
    }

    /// Reads the unread parts, unless another replica does.
    ///
    /// Errors: those of the database and of the registry; the parts stay unread.
    pub(crate) async fn read(&self) -> Result<(), Error> {
        let Some(source) = &self.source else {
            return Ok(());
        };
        let unread = std::mem::take(&mut *self.unread());
        if unread == UnreadContent::default() {
            return Ok(());
        }
        let read = self.read_alone(source, &unread).await;
        if !matches!(read, Ok(true)) {
            self.unread().add(unread);
        }
        match read {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::Unavailable {
                what: "the registry's content, which another replica reads",
                source: None,
            }),
            Err(error) => {
                self.store_failure(source, &error).await?;
                Err(error)
            }
        }
    }

    /// False if another replica holds the lock.
    async fn read_alone(
        &self,
        source: &PublicationTarget,
        unread: &UnreadContent,
    ) -> Result<bool, Error> {
        let doing = "reading the registry";
        let to_domain = |error: sqlx::Error| crate::db::Error::from(error).into_domain(doing);
        // Detached from the pool: the lock belongs to the session, which no request may share.
        let mut connection = self.db.pool()?.acquire().await.map_err(to_domain)?.detach();
        let locked = locks::try_lock_registry_content(&mut connection).await;
        let read = if locked.map_err(to_domain)? {
            let read = async {
                let known = self.stored().await?;
                let known = known.filter(|stored| stored.registry == source.name());
                let known = known.map(|stored| stored.content).unwrap_or_default();
                let content = self.read_parts(source, &known, unread).await?;
                self.store(source, &content).await?;
                Ok(true)
            };
            read.await
        } else {
            Ok(false)
        };
        // Closing releases the lock.
        let _ = timeout(CLOSE_TIMEOUT, connection.close()).await;
        read
    }

    /// Reads those parts of the registry.
    async fn read_parts(
        &self,
        source: &PublicationTarget,
        known: &RegistryContent,
        unread: &UnreadContent,
    ) -> Result<RegistryContent, Error> {
        let target = source.open()?;
        let reader = ContentReader {
            client: target.client,
            registry: target.registry,
            namespace: target.namespace,
            scratch: self.scratch.clone(),
        };
        let mut earlier = self.earlier.lock().await;
        earlier.forget(&unread.repositories);
        if unread.everything {
            *earlier = EarlierReadings::default();
        } else if !unread.unreported {
            return reader.read_changed(known, &unread.repositories).await;
        }
        reader.read(known, &mut earlier).await
    }

    async fn stored(&self) -> Result<Option<StoredContent>, Error> {
        tx("read the registry's content", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            rows::find(&mut connection).await
        })
        .await
    }

    async fn store(
        &self,
        source: &PublicationTarget,
        content: &RegistryContent,
    ) -> Result<(), Error> {
        let (name, now) = (source.name(), service::clock::now());
        tx("store the registry's content", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            rows::put(&mut connection, &name, content, now).await
        })
        .await?;
        self.offer.set_content(content);
        Ok(())
    }

    async fn store_failure(&self, source: &PublicationTarget, error: &Error) -> Result<(), Error> {
        let (name, reason) = (source.name(), error.chain());
        tx("store the registry's failure", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            rows::set_failure(&mut connection, &name, &reason).await
        })
        .await
    }

    /// The last reading, for the checks of the site; none if no registry is read.
    ///
    /// Errors: those of the database.
    pub(crate) async fn report(&self) -> Result<Option<ContentReport>, Error> {
        let Some(source) = &self.source else {
            return Ok(None);
        };
        let stored = self.stored().await?;
        let stored = stored.filter(|stored| stored.registry == source.name());
        Ok(Some(ContentReport {
            registry: source.name(),
            read_at: stored
                .as_ref()
                .and_then(|stored| Some(stored.read_at?.to_rfc3339())),
            failure: stored.as_ref().and_then(|stored| stored.failure.clone()),
            content: stored.map(|stored| stored.content).unwrap_or_default(),
        }))
    }

    /// Offers the last reading, of any replica.
    ///
    /// Errors: those of the database.
    pub(crate) async fn follow(&self) -> Result<(), Error> {
        let Some(source) = &self.source else {
            return Ok(());
        };
        let (registry, followed) = (source.name(), *self.followed());
        let other = tx("follow the registry's content", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            rows::find_other(&mut connection, &registry, followed).await
        })
        .await?;
        if let Some((content, read_at)) = other {
            self.offer.set_content(&content);
            *self.followed() = Some(read_at);
        }
        Ok(())
    }

    /// Logs which images that administrators added to an earlier server are not on offer.
    ///
    /// Errors: those of the database.
    pub(crate) async fn report_added_images(&self) -> Result<(), Error> {
        let mut added = tx("list added images", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            added_images::list(&mut connection).await
        })
        .await?;
        let offer = self.offer.get();
        let releases = offer.releases.iter();
        let releases = releases.map(|image| (&image.version, image.cpu_architecture));
        let os_images = offer.os_images.iter();
        let os_images = os_images.map(|image| (&image.openshift_version, image.cpu_architecture));
        for (version, architecture) in releases.chain(os_images) {
            let offered = format!("{version} {architecture}");
            added.retain(|name| *name != offered);
        }
        if !added.is_empty() {
            tracing::warn!(
                images = added.join(", "),
                remedy = "mirror the releases to the registry, or name the images in RELEASE_IMAGES and OS_IMAGES",
                "images that administrators added are no longer on offer"
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // limit: changed repositories that are read one by one
    #[test]
    fn very_many_changed_repositories_are_everything() {
        let names = |count: usize| UnreadContent {
            repositories: (0..count).map(|number| number.to_string()).collect(),
            ..UnreadContent::default()
        };
        let mut unread = UnreadContent::default();
        unread.add(names(CHANGED_REPOSITORIES));
        unread.add(names(CHANGED_REPOSITORIES));
        assert_eq!(unread, names(CHANGED_REPOSITORIES));
        unread.add(names(CHANGED_REPOSITORIES + 1));
        assert_eq!(unread, UnreadContent::everything());
    }
}
