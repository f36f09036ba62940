//! What keepers work with: the folder of caches, the client for registries.

use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};
use std::thread;

use oci::{Client, ClientOptions};
use service::Error;
use service::health::Health;

use crate::Settings;
use crate::keep::{Keeper, Shared};
use crate::served::Catalog;
use crate::source::Staging;

/// Held by the process whose temporary folders are beside it.
const LOCK: &str = ".lock";

/// Goes when nobody works any more.
#[derive(Debug)]
pub(crate) struct Workplace {
    shared: Arc<Shared>,
    /// Tells others that temporary folders are in use.
    _lock: Option<File>,
}

impl Workplace {
    /// Errors: a folder, a file of logins or certificates that cannot be used.
    pub(crate) fn open(settings: &Settings) -> Result<Self, Error> {
        let client = client(settings)?;
        let spare = OnceLock::new();
        let folder = if let Some(folder) = &settings.catalog_cache_dir {
            folder.clone()
        } else {
            let own = temporary(settings)?;
            let path = own.path().to_owned();
            spare.set(own).ok();
            path
        };
        let lock = tidy(&folder);
        let cores = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let shared = Shared {
            client,
            folder,
            spare,
            temporary: settings.tmpdir.clone(),
            health: Health::new(),
            workers: NonZeroUsize::new(settings.catalog_workers).unwrap_or(cores),
            is_cache_enforced: settings.catalog_cache_enforced,
        };
        Ok(Self {
            shared: Arc::new(shared),
            _lock: lock,
        })
    }

    pub(crate) fn health(&self) -> &Health {
        &self.shared.health
    }

    pub(crate) fn keepers(&self, settings: &Settings) -> Vec<Keeper> {
        let catalogs = settings.catalogs.0.iter();
        let keeper = |config: &crate::CatalogConfig| {
            Keeper::new(config.clone(), Catalog::new(), Arc::clone(&self.shared))
        };
        catalogs.map(keeper).collect()
    }
}

fn client(settings: &Settings) -> Result<Client, Error> {
    let read = |path| fs::read(path).map_err(|e| Error::new("reading CATALOG_CA_FILE", e));
    let options = ClientOptions {
        credentials: service::registry_logins(settings.registry_auth_file.as_deref())?,
        ca_pem: settings.catalog_ca_file.as_ref().map(read).transpose()?,
        insecure: settings.catalog_insecure,
        ..ClientOptions::default()
    };
    Client::new(options).map_err(|e| Error::new("preparing the client for registries", e))
}

fn temporary(settings: &Settings) -> Result<Staging, Error> {
    Staging::new(&settings.tmpdir).map_err(|e| Error::new("making a folder for caches", e))
}

/// Removes what killed processes left, unless another one works here. A folder that cannot be written may hold caches
/// all the same.
fn tidy(folder: &std::path::Path) -> Option<File> {
    fs::create_dir_all(folder).ok()?;
    let options = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .clone();
    let lock = options.open(folder.join(LOCK)).ok()?;
    lock.try_lock().ok()?;
    Staging::clear(folder);
    Some(lock)
}
