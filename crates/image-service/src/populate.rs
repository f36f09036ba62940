//! Brings a base image for every version on offer: from the data folder, from the mounted live image, or by
//! downloading it. Keeps trying; the server answers 503 for what is not there yet.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use service::CancellationToken;
use service::health::Health;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::Settings;
use crate::catalog::{Base, Catalog};
use crate::download::{Download, DownloadError};
use crate::image::{BadImage, Image};
use crate::turn::Turn;

/// What `/ready` waits for.
pub(crate) const COMPONENT: &str = "os images";

/// Downloads at the same time: more would only share the same line.
const PARALLEL_DOWNLOADS: usize = 4;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Why a base image is not there yet.
#[derive(Debug, thiserror::Error)]
enum NotThere {
    #[error("downloading {from} failed")]
    Download {
        from: String,
        #[source]
        source: DownloadError,
    },
    #[error(transparent)]
    Bad(#[from] BadImage),
    #[error("{path} is for another architecture than {architecture}")]
    Architecture { path: PathBuf, architecture: String },
    #[error(
        "there is neither {file} in DATA_DIR nor LIVE_ISO nor a url in OS_IMAGES: put the file there or set one"
    )]
    NoSource { file: String },
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
}

struct Populate {
    catalog: Arc<Catalog>,
    data_dir: PathBuf,
    live_iso: PathBuf,
    client: reqwest::Client,
    downloads: Semaphore,
    health: Health,
}

/// Fills `catalog` until everything is there or `shutdown`.
pub(crate) async fn run(
    catalog: Arc<Catalog>,
    settings: &Settings,
    client: reqwest::Client,
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
    if catalog.bases.is_empty() {
        tracing::warn!("OS_IMAGES is empty: there is no image to offer");
    }
    populate.report();
    let mut tasks = JoinSet::new();
    for base in &catalog.bases {
        let bring = Arc::clone(&populate).bring(Arc::clone(base));
        tasks.spawn(shutdown.clone().run_until_cancelled_owned(bring));
    }
    tasks.join_all().await;
}

impl Populate {
    async fn bring(self: Arc<Self>, base: Arc<Base>) {
        let mut pause = FIRST_PAUSE;
        let mut download = Download::default();
        loop {
            match self.provide(&base, &mut download).await {
                Ok(image) => {
                    let (version, volume) = (&base.version, &image.volume_id);
                    tracing::info!(
                        version,
                        volume,
                        architecture = base.architecture,
                        "OS image is ready"
                    );
                    base.set(image);
                    self.report();
                    return;
                }
                Err(error) => {
                    let error = model::error::chain(&error);
                    let (version, pause_s) = (&base.version, pause.as_secs());
                    tracing::warn!(
                        version,
                        architecture = base.architecture,
                        error,
                        pause_s,
                        "OS image is not there yet"
                    );
                }
            }
            tokio::time::sleep(pause).await;
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    fn report(&self) {
        let waiting: Vec<_> = self
            .catalog
            .bases
            .iter()
            .filter(|base| !base.is_ready())
            .map(|base| format!("{} {}", base.version, base.architecture))
            .collect();
        if waiting.is_empty() {
            self.health.ready(COMPONENT);
        } else {
            let why = format!("not there yet: {}; the log says why", waiting.join(", "));
            self.health.unready(COMPONENT, why);
        }
    }

    async fn provide(&self, base: &Base, download: &mut Download) -> Result<Image, NotThere> {
        let own = self.data_dir.join(base.file_name());
        if exists(&own).await {
            return Ok(open(own, Check::Form).await?);
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
            return Err(NotThere::NoSource { file });
        }
        self.download(base, &own, download).await
    }

    async fn open_live_iso(&self, base: &Base) -> Result<Image, NotThere> {
        let path = self.live_iso.clone();
        let image = open(path.clone(), Check::Sizes).await?;
        if image.is_x86 != (base.architecture == "x86_64") {
            let architecture = base.architecture.clone();
            return Err(NotThere::Architecture { path, architecture });
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
        base: &Base,
        own: &Path,
        download: &mut Download,
    ) -> Result<Image, NotThere> {
        let partial = own.with_extension("iso.part");
        let turn = Turn::take(&partial).await;
        let _turn = turn.map_err(|source| NotThere::Open {
            path: partial.clone(),
            source,
        })?;
        if exists(own).await {
            // Another replica brought it meanwhile.
            tokio::fs::remove_file(&partial).await.ok();
            return Ok(open(own.to_owned(), Check::Form).await?);
        }
        // The semaphore is never closed, so this only waits.
        let _place = self.downloads.acquire().await;
        tracing::info!(
            version = base.version,
            architecture = base.architecture,
            "downloading the OS image"
        );
        let fetched = download.fetch(&self.client, &base.url, &partial).await;
        fetched.map_err(|source| NotThere::Download {
            from: without_secrets(&base.url),
            source,
        })?;
        if let Err(error) = open(partial.clone(), Check::Sizes).await {
            tokio::fs::remove_file(&partial).await.ok();
            return Err(error.into());
        }
        let moved = publish(&partial, own).await;
        moved.map_err(|source| NotThere::Move {
            path: own.to_owned(),
            source,
        })?;
        Ok(open(own.to_owned(), Check::Form).await?)
    }
}

#[derive(Debug, Clone, Copy)]
enum Check {
    /// What somebody put there on purpose is used as it is, if it is an image at all.
    Form,
    /// What was fetched might be cut off.
    Sizes,
}

async fn open(path: PathBuf, check: Check) -> Result<Image, BadImage> {
    let opened = tokio::task::spawn_blocking(move || {
        let image = Image::open(&path)?;
        if matches!(check, Check::Sizes) {
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

/// Gives a durable file its name, durably.
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
