//! The store that the settings name.

use std::sync::Arc;

use blob_store::{AnyStore, BucketStore, DiskOptions, DiskStore, object};
use service::{Error, ResultExt as _};

use crate::settings::{Driver, Settings};

/// The store that requests are answered from; clones share it.
pub(crate) type Store = AnyStore;

/// Reason why every write is refused; None when writes are allowed.
pub(crate) fn read_only(store: &Store, settings: &Settings) -> Option<String> {
    if settings.registry_storage_maintenance_readonly_enabled {
        return Some("REGISTRY_STORAGE_MAINTENANCE_READONLY_ENABLED is set".to_owned());
    }
    match store {
        // The log of the start has the cause, with its path.
        Store::Disk(disk) if disk.read_only().is_some() => {
            Some("its storage folder is on a read-only medium, or of another user".to_owned())
        }
        _ => None,
    }
}

/// Opens the store; with the place where it is, in words.
///
/// Errors: it cannot be used.
pub(crate) async fn open(settings: &Settings) -> Result<(Store, String), Error> {
    match settings.driver() {
        Driver::Filesystem => {
            let root = &settings.registry_storage_filesystem_rootdirectory;
            let place = root.display().to_string();
            let failed = |e| Error::new(format!("opening the storage in {place}"), e);
            let options = DiskOptions {
                reserve_bytes: settings.registry_storage_filesystem_reserve.0,
                is_read_only: settings.registry_storage_maintenance_readonly_enabled,
            };
            let store = DiskStore::open_with(root, options).await.map_err(failed)?;
            Ok((Store::Disk(store), place))
        }
        Driver::S3 => {
            let place = place(settings);
            let doing = || format!("opening the storage in {place}");
            let bucket = object::s3(&settings.s3()?).doing(doing)?;
            let root = &settings.registry_storage_s3_rootdirectory;
            let part_bytes = settings.registry_storage_s3_chunksize;
            let store = BucketStore::open(Arc::new(bucket), root, part_bytes);
            let store = store.await.doing(doing)?;
            Ok((Store::Bucket(store), place))
        }
    }
}

fn place(settings: &Settings) -> String {
    let bucket = &settings.registry_storage_s3_bucket;
    match settings.registry_storage_s3_rootdirectory.trim_matches('/') {
        "" => format!("the bucket {bucket}"),
        root => format!("the folder {root} of the bucket {bucket}"),
    }
}
