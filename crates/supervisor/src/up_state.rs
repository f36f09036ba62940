//! The state of a running installation, for other programs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Content of `atoll.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpState {
    /// URL of the installer API.
    pub api_url: String,
    /// URL of the image service.
    pub image_service_url: String,
    /// URL of the web UI.
    pub ui_url: String,
    /// Host and port of the registry.
    pub registry: String,
    /// Registry user.
    pub registry_user: String,
    /// File with that user's password.
    pub registry_password_file: PathBuf,
    /// CA certificate of the registry, PEM.
    pub registry_ca: PathBuf,
    /// Folder of the stop files: `<service>.stop` keeps a service stopped.
    pub control: PathBuf,
    /// Port of the database on loopback.
    pub postgres_port: u16,
    /// Catalogs, as in CATALOGS; empty without a catalog server.
    #[serde(default)]
    pub catalogs: String,
    /// Host and port of the catalog server; empty without one.
    #[serde(default)]
    pub catalog_server: String,
    /// Process ids of running children and the supervisor.
    pub pids: BTreeMap<String, u32>,
}
