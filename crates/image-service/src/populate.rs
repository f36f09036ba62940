//! Populates the base image of every version: from the data folder, from the mounted live image, or by a download.
//! Retries with backoff; images that are not populated yet get 503.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use model::Error;
use service::CancellationToken;
use service::health::Health;
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::Settings;
use crate::catalog::{CatalogImage, ImageCatalog};
use crate::download::{DownloadClient, DownloadError, DownloadProgress, ImageDownload};
use crate::file_lock::FileLock;
use crate::image::{BaseImage, BaseImageError};
use crate::offer::ImageOffer;
use crate::stale_files;

/// Component of `/ready`.
pub(crate) const COMPONENT: &str = "os images";

/// Concurrent downloads: more would only share the same bandwidth.
const PARALLEL_DOWNLOADS: usize = 4;
/// Bytes in the file of an OS image, while it is downloaded and after.
const DOWNLOADED: &str = "atoll_os_image_downloaded_bytes";
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Backoff while the source, or the file of an administrator, is missing.
const RETRY: Backoff = Backoff {
    first: Duration::from_secs(1),
    longest: Duration::from_mins(1),
};
/// Backoff after a download that was in vain: another attempt costs the whole image again.
const REPEATED_DOWNLOAD: Backoff = Backoff {
    first: Duration::from_secs(5),
    longest: Duration::from_mins(15),
};

/// Pauses between attempts, which double.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Backoff {
    first: Duration,
    longest: Duration,
}

impl Backoff {
    /// The pause after the failure number `failures`, which counts from 0.
    fn pause(self, failures: u32) -> Duration {
        let doubled = self.first.saturating_mul(2_u32.saturating_pow(failures));
        self.longest.min(doubled)
    }
}

/// Reason why a base image is not populated.
#[derive(Debug, thiserror::Error)]
enum PopulateError {
    #[error("downloading {from} failed")]
    Download {
        from: String,
        #[source]
        source: DownloadError,
    },
    #[error(transparent)]
    Bad(#[from] BaseImageError),
    #[error("{path} is for another architecture than {architecture}")]
    Architecture { path: PathBuf, architecture: String },
    #[error(
        "no source: neither {file} in DATA_DIR, nor LIVE_ISO, nor a url in OS_IMAGES; add the file or set one"
    )]
    NoSource { file: String },
    #[error("the download has SHA-256 {found} instead of {expected}, the sha256 of OS_IMAGES")]
    Checksum { expected: String, found: String },
    #[error("opening {path}")]
    Open {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("moving the download to {path}")]
    Move {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// The download is complete, and no live image or another one.
    #[error("the download cannot be used")]
    Unusable(#[source] Box<PopulateError>),
}

impl PopulateError {
    /// The backoff before the next attempt.
    fn backoff(&self) -> Backoff {
        use DownloadError::{Checksum, NoSpace, Payload, Registry, TooLarge};
        match self {
            Self::Unusable(_)
            | Self::Download {
                // Invalid: another digest, or no reference.
                source:
                    TooLarge { .. }
                    | NoSpace { .. }
                    | Payload(_)
                    | Checksum { .. }
                    | Registry(Error::Invalid { .. } | Error::TooLarge { .. }),
                ..
            } => REPEATED_DOWNLOAD,
            _ => RETRY,
        }
    }
}

struct Populate {
    catalog: Arc<ImageCatalog>,
    data_dir: PathBuf,
    live_iso: PathBuf,
    client: DownloadClient,
    downloads: Semaphore,
    health: Health,
}

/// Populates `catalog`, and again whenever `offer` changes, until `shutdown`.
pub(crate) async fn run(
    catalog: Arc<ImageCatalog>,
    settings: &Settings,
    mut offer: ImageOffer,
    client: DownloadClient,
    health: Health,
    shutdown: CancellationToken,
) {
    let populate = Arc::new(Populate {
        catalog: Arc::clone(&catalog),
        data_dir: settings.data_dir.clone(),
        live_iso: settings.live_iso.clone(),
        client,
        downloads: Semaphore::new(PARALLEL_DOWNLOADS),
        health,
    });
    let mut tasks = PopulateTasks::default();
    loop {
        tasks.follow(&populate, &shutdown);
        // The files of images that are not known yet stay.
        if offer.is_complete() {
            stale_files::remove(&populate.data_dir, &catalog).await;
        }
        if shutdown
            .run_until_cancelled(offer.changed())
            .await
            .is_none()
        {
            break;
        }
        catalog.replace(&offer.images());
        offer.is_applied();
    }
    tasks.wait().await;
}

/// The tasks that populate images: one for each.
#[derive(Default)]
struct PopulateTasks {
    running: JoinSet<Option<()>>,
    images: Vec<(Arc<CatalogImage>, CancellationToken)>,
}

impl PopulateTasks {
    /// Starts the tasks of new images and ends those of images that are not on offer any more.
    fn follow(&mut self, populate: &Arc<Populate>, shutdown: &CancellationToken) {
        let bases = populate.catalog.bases();
        if bases.is_empty() {
            tracing::warn!("OS_IMAGES is empty: no images to serve");
        }
        self.images.retain(|(image, end)| {
            let stays = bases.iter().any(|base| Arc::ptr_eq(base, image));
            if !stays {
                end.cancel();
            }
            stays
        });
        populate.report();
        while self.running.try_join_next().is_some() {}
        for base in bases {
            if self
                .images
                .iter()
                .any(|(image, _)| Arc::ptr_eq(image, &base))
            {
                continue;
            }
            let end = shutdown.child_token();
            let bring = Arc::clone(populate).bring(Arc::clone(&base));
            self.running
                .spawn(end.clone().run_until_cancelled_owned(bring));
            self.images.push((base, end));
        }
    }

    async fn wait(self) {
        self.running.join_all().await;
    }
}

impl Populate {
    async fn bring(self: Arc<Self>, base: Arc<CatalogImage>) {
        if exists(&self.data_dir.join(base.file_name())).await {
            base.want();
        }
        base.wanted().await;
        self.report();
        let mut failures = 0;
        let mut download = ImageDownload::default();
        loop {
            match self.provide(&base, &mut download).await {
                Ok(image) => {
                    let (version, volume) = (&base.version, &image.volume_id);
                    tracing::info!(
                        version,
                        volume,
                        architecture = base.architecture,
                        "OS image ready"
                    );
                    base.set(image);
                    self.report();
                    return;
                }
                Err(error) => {
                    base.has_failed.store(true, Ordering::Relaxed);
                    self.report();
                    let pause = error.backoff().pause(failures);
                    let error = model::error::chain(&error);
                    let (version, pause_s) = (&base.version, pause.as_secs());
                    tracing::warn!(
                        version,
                        architecture = base.architecture,
                        error,
                        pause_s,
                        "OS image not populated, retrying"
                    );
                    tokio::time::sleep(pause).await;
                    failures += 1;
                }
            }
        }
    }

    /// Images that fail do not hold back the others: the service is ready when each has been tried and one is there.
    fn report(&self) {
        let waiting = self.catalog.waiting();
        if waiting.is_empty() {
            self.health.ready(COMPONENT);
            self.health.ails(COMPONENT, None);
            return;
        }
        let why = format!("not there yet: {}; the log says why", waiting.join(", "));
        let mut bases = self.catalog.bases();
        bases.retain(|base| base.is_wanted());
        let is_tried =
            |base: &Arc<CatalogImage>| base.is_ready() || base.has_failed.load(Ordering::Relaxed);
        let some_are_there = waiting.len() < bases.len();
        let was_ready = !self.health.waiting().contains_key(COMPONENT);
        if some_are_there && (was_ready || bases.iter().all(is_tried)) {
            self.health.ready(COMPONENT);
            self.health.ails(COMPONENT, Some(why));
        } else {
            self.health.unready(COMPONENT, why);
        }
    }

    async fn provide(
        &self,
        base: &CatalogImage,
        download: &mut ImageDownload,
    ) -> Result<BaseImage, PopulateError> {
        let own = self.data_dir.join(base.file_name());
        if exists(&own).await {
            return Ok(open(own, ImageCheck::Form).await?);
        }
        if exists(&self.live_iso).await {
            match self.open_live_iso(base).await {
                Ok(image) => return Ok(image),
                Err(error) if base.url.is_empty() => return Err(error),
                Err(error) => {
                    let error = model::error::chain(&error);
                    tracing::warn!(error, "LIVE_ISO cannot be used, downloading instead");
                }
            }
        }
        if base.url.is_empty() {
            let file = base.file_name();
            return Err(PopulateError::NoSource { file });
        }
        if let Some(path) = base.file() {
            // Used where it is: a copy would only take space.
            return Ok(open(path, ImageCheck::Sizes).await?);
        }
        self.download(base, &own, download).await
    }

    async fn open_live_iso(&self, base: &CatalogImage) -> Result<BaseImage, PopulateError> {
        let path = self.live_iso.clone();
        let image = open(path.clone(), ImageCheck::Sizes).await?;
        if image.is_x86 != (base.architecture == "x86_64") {
            let architecture = base.architecture.clone();
            return Err(PopulateError::Architecture { path, architecture });
        }
        if !image.volume_id.contains(&base.version) {
            let (version, volume) = (&base.version, &image.volume_id);
            tracing::warn!(
                version,
                volume,
                "LIVE_ISO is of another version than OS_IMAGES says"
            );
        }
        Ok(image)
    }

    async fn download(
        &self,
        base: &CatalogImage,
        own: &Path,
        download: &mut ImageDownload,
    ) -> Result<BaseImage, PopulateError> {
        let partial = own.with_extension("iso.part");
        let lock = FileLock::acquire(&partial).await;
        let _lock = lock.map_err(|source| PopulateError::Open {
            path: partial.clone(),
            source,
        })?;
        if exists(own).await {
            // Another replica downloaded it meanwhile.
            tokio::fs::remove_file(&partial).await.ok();
            return Ok(open(own.to_owned(), ImageCheck::Form).await?);
        }
        // The semaphore is never closed, so this only waits.
        let _permit = self.downloads.acquire().await;
        tracing::info!(
            version = base.version,
            architecture = base.architecture,
            "downloading the OS image"
        );
        let gauge = metrics::gauge!(
            DOWNLOADED, "version" => base.version.clone(), "architecture" => base.architecture.clone()
        );
        let fetch = download.fetch(&self.client, base, &partial);
        let fetched = while_reported(fetch, &gauge, &base.progress).await;
        let fetched = fetched.map_err(|source| PopulateError::Download {
            from: without_secrets(&base.url),
            source,
        });
        // Checked before it gets its final name: a truncated image would be served for ever.
        let checked = match fetched {
            Ok(()) => check(base, &partial)
                .await
                .map_err(|error| PopulateError::Unusable(Box::new(error))),
            Err(error) => Err(error),
        };
        if let Err(error) = checked {
            // Its bytes are of no use, or others need their space.
            if error.backoff() == REPEATED_DOWNLOAD {
                tokio::fs::remove_file(&partial).await.ok();
            }
            return Err(error);
        }
        let moved = publish(&partial, own).await;
        moved.map_err(|source| PopulateError::Move {
            path: own.to_owned(),
            source,
        })?;
        Ok(open(own.to_owned(), ImageCheck::Form).await?)
    }
}

/// Checks a download: the format, the sizes, the checksum.
async fn check(base: &CatalogImage, path: &Path) -> Result<(), PopulateError> {
    open(path.to_owned(), ImageCheck::Sizes).await?;
    check_sum(path, &base.sha256).await
}

/// Compares the SHA-256 of a file with the one in OS_IMAGES, if there is one.
async fn check_sum(path: &Path, expected: &str) -> Result<(), PopulateError> {
    if expected.is_empty() {
        return Ok(());
    }
    let file = path.to_owned();
    let summed = tokio::task::spawn_blocking(move || {
        let mut hash = Sha256::new();
        std::io::copy(&mut std::fs::File::open(file)?, &mut hash)?;
        Ok(hex::encode(hash.finalize()))
    });
    let found = summed.await.map_err(std::io::Error::other);
    let found = found.flatten().map_err(|source| PopulateError::Open {
        path: path.to_owned(),
        source,
    })?;
    if found == expected {
        return Ok(());
    }
    let expected = expected.to_owned();
    Err(PopulateError::Checksum { expected, found })
}

/// Sets the gauge to the progress until `download` ends.
async fn while_reported<T>(
    download: impl Future<Output = T>,
    gauge: &metrics::Gauge,
    progress: &DownloadProgress,
) -> T {
    #[expect(
        clippy::cast_precision_loss,
        reason = "lengths of images are far below 2^53"
    )]
    let report = || gauge.set(progress.received() as f64);
    let mut download = std::pin::pin!(download);
    let mut interval = tokio::time::interval(REPORT_INTERVAL);
    loop {
        tokio::select! {
            done = &mut download => {
                report();
                return done;
            }
            _ = interval.tick() => report(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum ImageCheck {
    /// The format alone: files of the administrator are used as they are.
    Form,
    /// The sizes, too: a download may be truncated.
    Sizes,
}

async fn open(path: PathBuf, check: ImageCheck) -> Result<BaseImage, BaseImageError> {
    let opened = tokio::task::spawn_blocking(move || {
        let image = BaseImage::open(&path)?;
        if matches!(check, ImageCheck::Sizes) {
            image.check_sizes(&path)?;
        }
        Ok(image)
    });
    match opened.await {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

async fn exists(path: &Path) -> bool {
    tokio::fs::try_exists(path).await.unwrap_or(false)
}

/// Atomic publication of a synced file: rename, then fsync of the folder, so that the name survives a crash.
async fn publish(partial: &Path, own: &Path) -> std::io::Result<()> {
    tokio::fs::rename(partial, own).await?;
    match own.parent() {
        Some(folder) => tokio::fs::File::open(folder).await?.sync_all().await,
        None => Ok(()),
    }
}

fn without_secrets(url: &str) -> String {
    match url::Url::parse(url) {
        Ok(mut url) => {
            url.set_username("").ok();
            url.set_password(None).ok();
            url.set_query(None);
            url.to_string()
        }
        Err(_) => "the url of OS_IMAGES".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pause = |failures| REPEATED_DOWNLOAD.pause(failures).as_secs();
        assert_eq!([0, 1, 2, 3].map(pause), [5, 10, 20, 40]);
        assert_eq!([8, 100].map(pause), [900, 900]);
    }
}
