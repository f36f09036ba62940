//! The folder of a pod, as `atoll pod init` makes it, and its settings.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use testkit::demo::{Console, ContentOffer, DemoContent, DemoRegistry};

use super::compose::{Compose, Variables};
use crate::Scratch;
use crate::process::program;

/// User of the registry that `atoll pod init` makes.
const REGISTRY_USER: &str = "atoll";
/// Folder of boot images in the image service.
const IMAGES: &str = "/images";

/// Names the folder of `cargo xtask bundle` whose program makes pods; unset: the program of this build.
const BUNDLE: &str = "POD_BUNDLE";

/// The program that makes pods.
fn atoll() -> Result<PathBuf> {
    match std::env::var_os(BUNDLE) {
        Some(bundle) => Ok(Path::new(&bundle).join("atoll")),
        None => program("atoll"),
    }
}

/// The folder, removed on drop.
#[derive(Debug)]
pub struct Folder {
    scratch: Scratch,
}

impl Folder {
    /// Makes one for a host that is reached at `host`.
    ///
    /// Errors: the program's.
    pub fn new(host: &str) -> Result<Self> {
        let folder = Self {
            scratch: Scratch::new()?,
        };
        let output = Command::new(atoll()?)
            .args(["pod", "init", "--host", host, "--dir"])
            .arg(folder.path())
            .output()
            .context("running atoll pod init")?;
        ensure!(
            output.status.success(),
            "atoll pod init: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(folder)
    }

    /// Its path.
    pub fn path(&self) -> PathBuf {
        self.scratch.path().join("pod")
    }

    /// The current settings.
    ///
    /// Errors: the file cannot be read.
    pub fn variables(&self) -> Result<Variables> {
        read_variables(&self.settings())
    }

    /// Changes settings, as an operator edits the file: an existing variable gets the new value.
    ///
    /// Errors: the file cannot be read or written.
    pub fn set<'a>(&self, changes: impl IntoIterator<Item = (&'a str, String)>) -> Result<()> {
        set_in(&self.settings(), changes)
    }

    /// Changes settings of the proxy.
    ///
    /// Errors: as [`Folder::set`].
    pub fn set_proxy<'a>(
        &self,
        changes: impl IntoIterator<Item = (&'a str, String)>,
    ) -> Result<()> {
        set_in(&self.path().join("proxy/proxy.env"), changes)
    }

    /// The compose file with substituted settings.
    ///
    /// Errors: those of [`Compose::read`].
    pub fn compose(&self) -> Result<Compose> {
        Compose::read(&self.path().join("compose.yaml"), &self.variables()?)
    }

    /// Absolute path of a path in the compose file.
    pub(super) fn resolve(&self, path: &str) -> PathBuf {
        self.path().join(path.trim_start_matches("./"))
    }

    /// The password of the database.
    pub fn database_password(&self) -> PathBuf {
        self.path().join("secrets/database-password")
    }

    /// The registry at `address`.
    pub(super) fn registry(&self, address: String) -> DemoRegistry {
        DemoRegistry {
            address,
            user: REGISTRY_USER.to_owned(),
            password_file: self.path().join("secrets/registry-password"),
            ca: self.path().join("secrets/registry.crt"),
        }
    }

    /// Makes a live image, pushes a release, and writes the settings that name both.
    ///
    /// Errors: those of the file system and of the registry.
    pub(super) async fn make_content(&self, registry: &DemoRegistry) -> Result<DemoContent> {
        let installer = program("openshift-baremetal-install")?;
        let data = self.scratch.path();
        let content = DemoContent::make(
            data,
            registry,
            &installer,
            ContentOffer::Settings,
            &Console::new(true),
        )
        .await?;
        let iso = &content.live_iso;
        let name = iso.file_name().context("a live image has a name")?;
        let shared = self.path().join("images").join(name);
        fs::hard_link(iso, &shared).with_context(|| format!("linking {}", shared.display()))?;
        // The services see the image where the compose file mounts its folder.
        let outside = iso.display().to_string();
        let inside = format!("{IMAGES}/{}", name.to_string_lossy());
        let variables = read_variables(&content.settings)?;
        let variables = variables
            .iter()
            .map(|(name, value)| (name.as_str(), value.replace(&outside, &inside)));
        self.set(variables)?;
        Ok(content)
    }

    /// Writes the demo's file with the addresses of all services.
    ///
    /// Errors: it cannot be written.
    pub(super) fn write_state(&self, registry: &DemoRegistry, ports: &PodPorts) -> Result<PathBuf> {
        let url = |port| format!("http://127.0.0.1:{port}");
        let state = json!({
            "api_url": url(ports.api), "image_service_url": url(ports.images), "ui_url": url(ports.webui),
            "registry": registry.address, "registry_user": registry.user,
            "registry_password_file": registry.password_file, "registry_ca": registry.ca,
        });
        let path = self.scratch.path().join("atoll.json");
        fs::write(&path, state.to_string())
            .with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }

    /// A folder beside the pod's.
    ///
    /// Errors: it cannot be made.
    pub fn beside(&self, name: &str) -> Result<PathBuf> {
        let path = self.scratch.path().join(name);
        fs::create_dir_all(&path).with_context(|| format!("making {}", path.display()))?;
        Ok(path)
    }

    fn settings(&self) -> PathBuf {
        self.path().join(".env")
    }
}

/// Changes variables of a file: an existing one gets the new value. The file is replaced, as editors do.
fn set_in<'a>(path: &Path, changes: impl IntoIterator<Item = (&'a str, String)>) -> Result<()> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (name, value) in changes {
        let line = format!("{name}={value}");
        let prefix = format!("{name}=");
        match lines.iter_mut().find(|line| line.starts_with(&prefix)) {
            Some(found) => *found = line,
            None => lines.push(line),
        }
    }
    let new = path.with_extension("new");
    fs::write(&new, lines.join("\n") + "\n")
        .and_then(|()| fs::rename(&new, path))
        .with_context(|| format!("writing {}", path.display()))
}

/// Published ports.
#[derive(Debug, Clone, Copy)]
pub struct PodPorts {
    /// Of the API.
    pub api: u16,
    /// Of the image service.
    pub images: u16,
    /// Of the page.
    pub webui: u16,
    /// Of the page for the reverse proxy.
    pub webui_static: u16,
    /// Of the registry.
    pub registry: u16,
    /// Of the database.
    pub database: u16,
    /// Of HTTP.
    pub http: u16,
    /// Of HTTPS.
    pub https: u16,
}

pub(super) fn read_variables(path: &Path) -> Result<Variables> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    Ok(lines
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect())
}
