//! `atoll.json`: the services of a running `atoll up`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;

/// `atoll.json`.
#[derive(Debug, Clone, Deserialize)]
pub struct AtollState {
    /// Base address of the API.
    pub api_url: String,
    /// Base address of the image service.
    pub image_service_url: String,
    /// Address of the web UI.
    pub ui_url: Option<String>,
    /// Host and port of the registry.
    pub registry: String,
    /// Its user.
    pub registry_user: String,
    /// File with the user's password.
    pub registry_password_file: PathBuf,
    /// File with the certificate authority of the registry.
    pub registry_ca: PathBuf,
    /// Host and port of the catalog server; empty without one.
    #[serde(default)]
    pub catalog_server: String,
    /// Directory in which a file `<service>.stop` keeps a service stopped.
    pub control: Option<PathBuf>,
}

impl AtollState {
    /// Reads the file.
    ///
    /// Errors: it cannot be read, or a member is missing; `atoll up` writes it when everything is ready.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| {
            format!(
                "{}: cannot be read; is `atoll up` running and ready?",
                path.display()
            )
        })?;
        serde_json::from_str(&text)
            .with_context(|| format!("{}: is not the state of `atoll up`", path.display()))
    }

    /// The registry.
    pub fn registry(&self) -> DemoRegistry {
        DemoRegistry {
            address: self.registry.clone(),
            user: self.registry_user.clone(),
            password_file: self.registry_password_file.clone(),
            ca: self.registry_ca.clone(),
        }
    }
}

/// A registry and its user.
#[derive(Debug, Clone)]
pub struct DemoRegistry {
    /// Host and port.
    pub address: String,
    /// User with the right to push.
    pub user: String,
    /// File with the user's password.
    pub password_file: PathBuf,
    /// File with its certificate authority, PEM.
    pub ca: PathBuf,
}

impl DemoRegistry {
    /// A pull secret for it.
    ///
    /// Errors: the file with the password cannot be read.
    pub fn pull_secret(&self) -> Result<String> {
        let path = &self.password_file;
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("{}: cannot be read", path.display()))?;
        let password = text.trim_end_matches(['\r', '\n']);
        let auth = STANDARD.encode(format!("{}:{password}", self.user));
        let entry = json!({ "auth": auth, "email": "demo@example.org" });
        Ok(json!({ "auths": { &self.address: entry } }).to_string())
    }

    /// A client that pushes to it.
    ///
    /// Errors: a file cannot be read or used.
    pub fn client(&self) -> Result<oci_client::Client> {
        let ca = std::fs::read(&self.ca)
            .with_context(|| format!("{}: cannot be read", self.ca.display()))?;
        let options = oci_client::ClientOptions {
            credentials: oci_client::Credentials::from_pull_secret(&self.pull_secret()?)?,
            ca_pem: Some(ca),
            ..oci_client::ClientOptions::default()
        };
        Ok(oci_client::Client::new(options)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pull_secret_holds_the_registry() {
        let directory = tempfile::tempdir().unwrap();
        let password = directory.path().join("password");
        std::fs::write(&password, "secret\n").unwrap();
        let state = json!({
            "api_url": "http://127.0.0.1:8090", "image_service_url": "http://127.0.0.1:8888", "ui_url": "http://127.0.0.1:8989",
            "registry": "127.0.0.1:5000", "registry_user": "atoll", "registry_password_file": password,
            "registry_ca": "/ca.pem", "control": "/data/control",
        });
        let path = directory.path().join("atoll.json");
        std::fs::write(&path, state.to_string()).unwrap();
        let secret: serde_json::Value = serde_json::from_str(
            &AtollState::read(&path)
                .unwrap()
                .registry()
                .pull_secret()
                .unwrap(),
        )
        .unwrap();
        assert_eq!(
            secret["auths"]["127.0.0.1:5000"]["auth"],
            STANDARD.encode("atoll:secret")
        );
    }

    #[test]
    fn a_missing_state_names_the_remedy() {
        let error = AtollState::read(Path::new("/none/atoll.json")).unwrap_err();
        assert!(format!("{error:#}").contains("atoll up"));
    }
}
