//! The registry of the installed pod, as this machine reaches it.

use std::fs;
use std::path::Path;

use credentials::host_name::in_url;
use mirror::publish::MirrorTarget;
use oci::Reference;
use oci_client::{Client, ClientOptions, Credentials, Login};
use service::{Error, ResultExt as _};
use tokio::runtime::Runtime;

use crate::pod::compose::ComposeProject;

const PUBLISH: &str = "PUBLISH_REGISTRY";
const PORT: &str = "5000";
const LOOPBACK: &str = "127.0.0.1";

/// The registry.
pub(super) struct LocalRegistry {
    /// Host and port here.
    pub(super) address: String,
    /// Host and port for hosts and clusters.
    pub(super) public: String,
    pub(super) client: Client,
    runtime: Runtime,
}

impl LocalRegistry {
    /// The registry of the pod in `dir`, which hosts know as `host`.
    ///
    /// Errors: its secrets cannot be read.
    pub(super) fn of(project: &ComposeProject, dir: &Path, host: &str) -> Result<Self, Error> {
        let doing = "connecting to the local registry";
        let published = project.setting(PUBLISH).unwrap_or(PORT);
        let port = published.rsplit(':').next().unwrap_or(PORT);
        let address = format!("{LOOPBACK}:{port}");
        let certificate = dir.join("secrets/registry.crt");
        let login = login(dir)?;
        let client = Client::new(ClientOptions {
            credentials: Credentials::anonymous().with(address.clone(), login),
            ca_pem: Some(fs::read(&certificate).doing(doing)?),
            ..ClientOptions::default()
        });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build();
        Ok(Self {
            public: format!("{}:{port}", in_url(host)),
            address,
            client: client.map_err(|e| e.chain()).doing(doing)?,
            runtime: runtime.doing(doing)?,
        })
    }

    /// Runs requests to it.
    pub(super) fn run<T>(&self, requests: impl Future<Output = T>) -> T {
        self.runtime.block_on(requests)
    }

    /// It as a target of `atoll mirror`, under one of its addresses.
    ///
    /// Errors: Invalid – a malformed address.
    pub(super) fn target(&self, address: &str) -> Result<MirrorTarget, model::Error> {
        let place: Reference = format!("{address}/any").parse()?;
        Ok(MirrorTarget {
            client: self.client.clone(),
            registry: place.registry,
            namespace: String::new(),
            max_components: 0,
        })
    }
}

/// The registry's own user.
fn login(dir: &Path) -> Result<Login, Error> {
    let path = dir.join("secrets/registry-password");
    let password = fs::read_to_string(&path).doing(|| format!("reading {}", path.display()))?;
    Ok(Login {
        user: credentials::secrets::REGISTRY_USER.to_owned(),
        password: password.trim_end().to_owned().into(),
    })
}
