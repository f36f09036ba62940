//! The site of `atoll up`, by its state file.

use std::path::Path;

use doctor::{BootImage, DataFolder, RegistryAccess, SiteFacts};
use oci_client::{Credentials, Login};
use service::Error;

use super::is_local;
use crate::up::UpState;
use crate::up::data_directory::DataDirectory;

/// Units: bytes.
const REQUIRED_DISK: u64 = 1024 * 1024 * 1024;
/// Units: bytes. Of the database and the API server with a preparation.
const REQUIRED_MEMORY: u64 = 2 * 1024 * 1024 * 1024;

/// The site of the data directory `dir`.
///
/// Errors: nothing runs there.
pub(super) fn site(dir: &Path) -> Result<SiteFacts, Error> {
    let directory = DataDirectory::new(Some(dir.to_owned()))?;
    let doing = || format!("reading the site in {}", dir.display());
    let text = std::fs::read(directory.state()).map_err(|_| {
        Error::new(
            doing(),
            "no .env of a pod, and no running `atoll up`: name another folder with --dir",
        )
    })?;
    let state: UpState = serde_json::from_slice(&text).map_err(|e| Error::new(doing(), e))?;
    let read = |path: &Path| {
        std::fs::read_to_string(path)
            .map_err(|e| Error::new(format!("reading {}", path.display()), e))
    };
    let password = read(&state.registry_password_file)?;
    let login = Login {
        user: state.registry_user,
        password: password.trim_end().into(),
    };
    // Of a try-out, whose services only this machine reaches.
    let outside = |url: &str| (!is_local(url)).then(|| url.to_owned());
    Ok(SiteFacts {
        folders: vec![DataFolder {
            path: directory.root().to_owned(),
            required_bytes: REQUIRED_DISK,
        }],
        memory_bytes: Some(REQUIRED_MEMORY),
        ca_pem: Some(read(&state.registry_ca)?.into_bytes()),
        registry: Some(RegistryAccess {
            credentials: Credentials::anonymous().with(state.registry.clone(), login),
            address: state.registry,
            source: state.registry_password_file.display().to_string(),
        }),
        database: Some(("127.0.0.1".to_owned(), state.postgres_port)),
        api: state.api_url.parse().ok(),
        boot_images: None::<Vec<BootImage>>,
        service_base_url: outside(&state.api_url),
        image_service_base_url: outside(&state.image_service_url),
        ..SiteFacts::default()
    })
}
