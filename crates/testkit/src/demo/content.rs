//! Content of the services: releases with their live image.
//!
//! The registry is all that is filled: the services find the release and its live image there.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::console::Console;
use super::state::DemoRegistry;
use crate::iso;
use crate::release::{self, InstallerProgram, ReleaseContent};

/// Versions are `MINOR.FIRST_PATCH` and up.
const MINOR: &str = "4.18";
const FIRST_PATCH: usize = 30;
/// Namespace of releases in the registry.
const NAMESPACE: &str = "atoll";

/// Where the services find the releases and the live image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ContentOffer {
    /// In the registry, which is all that is filled.
    #[default]
    Registry,
    /// In lists of their settings, for services that are not to wait for a reading of the registry.
    Settings,
}

/// The content of the demo.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DemoContent {
    /// Releases in the registry, oldest first.
    pub releases: Vec<DemoRelease>,
    /// The live image.
    pub live_iso: PathBuf,
    /// Version of the operating system in it.
    pub os_version: String,
    /// Where the services find both.
    #[serde(default)]
    pub offer: ContentOffer,
    /// The settings file for the services.
    pub settings: PathBuf,
    /// The program that goes into releases.
    pub installer: PathBuf,
}

/// A release, by digest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DemoRelease {
    /// Full version.
    pub version: String,
    /// The release image.
    pub image: String,
}

impl DemoContent {
    /// Folder of the content in a data directory.
    pub fn directory(data: &Path) -> PathBuf {
        data.join("demo")
    }

    /// Reads the record of [`DemoContent::make`]; `None` when there is none.
    ///
    /// Errors: the record is damaged.
    pub fn read(data: &Path) -> Result<Option<Self>> {
        let path = Self::directory(data).join("content.json");
        let Ok(text) = std::fs::read_to_string(&path) else {
            return Ok(None);
        };
        let content = serde_json::from_str(&text);
        content
            .map(Some)
            .with_context(|| format!("{}: is damaged, remove it", path.display()))
    }

    /// Makes the live image, pushes a release around the program `installer` and writes the settings.
    ///
    /// Errors: those of the file system and of the registry.
    pub async fn make(
        data: &Path,
        registry: &DemoRegistry,
        installer: &Path,
        offer: ContentOffer,
        console: &Console,
    ) -> Result<Self> {
        let directory = std::path::absolute(Self::directory(data))?;
        std::fs::create_dir_all(&directory)
            .with_context(|| format!("{}: cannot be made", directory.display()))?;
        let options = iso::LiveImageOptions::default();
        let live_iso = directory.join(format!("live-{}.iso", options.os_version));
        let written = iso::write(&live_iso, &options)
            .with_context(|| format!("{}: cannot be made", live_iso.display()))?;
        console.step(format!(
            "live image {} made: {} MiB",
            options.volume_id(),
            written.length >> 20
        ));
        console.detail(live_iso.display().to_string());
        let mut content = Self {
            releases: Vec::new(),
            live_iso,
            os_version: options.os_version,
            offer,
            settings: directory.join("settings.env"),
            installer: std::path::absolute(installer)?,
        };
        content.add_release(registry, console).await?;
        Ok(content)
    }

    /// Pushes one more release, which no service has seen yet, and writes the settings.
    ///
    /// Errors: as [`DemoContent::make`].
    pub async fn add_release(&mut self, registry: &DemoRegistry, console: &Console) -> Result<()> {
        let version = format!("{MINOR}.{}", FIRST_PATCH + self.releases.len());
        let client = registry.client()?;
        let content = ReleaseContent {
            installer: InstallerProgram::of(&self.installer)?,
            live_image: Some(self.live_iso.clone()),
        };
        let place = &registry.address;
        let published = release::publish_content(&client, place, NAMESPACE, &content, &version);
        let published = published.await.with_context(|| {
            format!("release {version} cannot be pushed to {}", registry.address)
        })?;
        console.step(format!("release {version} pushed to {}", registry.address));
        console.detail(&published.release);
        self.releases.push(DemoRelease {
            version,
            image: published.release,
        });
        replace(
            &self.settings.with_file_name("content.json"),
            &serde_json::to_string_pretty(self)?,
        )?;
        // Last: the services restart when they see it, and then everything it names must be there.
        replace(&self.settings, &self.env())?;
        console.step(format!(
            "settings for the services written to {}",
            self.settings.display()
        ));
        Ok(())
    }

    /// The settings, as container engines read them. Images of hosts are those of the release.
    fn env(&self) -> String {
        let lists = match self.offer {
            ContentOffer::Registry => String::new(),
            ContentOffer::Settings => self.lists(),
        };
        format!("DUMMY_IGNITION=False\n{lists}")
    }

    fn lists(&self) -> String {
        let os_images = json!([{
            "openshift_version": MINOR, "cpu_architecture": "x86_64",
            "url": format!("file://{}", self.live_iso.display()), "version": self.os_version,
        }]);
        let release = |release: &DemoRelease| {
            json!({
                "openshift_version": MINOR, "cpu_architecture": "x86_64", "cpu_architectures": ["x86_64"],
                "url": release.image, "version": release.version, "support_level": "production",
                "default": release.version == self.version(),
            })
        };
        let releases: Vec<_> = self.releases.iter().map(release).collect();
        // Requests are not to wait for the registry; simulated hosts pull no image, and any name will do.
        let image = self.releases.first().map_or("", |release| &release.image);
        let names = ["AGENT_DOCKER_IMAGE", "INSTALLER_IMAGE", "CONTROLLER_IMAGE"];
        let images = names.map(|name| format!("{name}={image}\n")).concat();
        let releases = json!(releases);
        format!("OS_IMAGES={os_images}\nRELEASE_IMAGES={releases}\n{images}")
    }

    /// The version that is installed: the newest.
    pub fn version(&self) -> &str {
        self.releases
            .last()
            .map_or("", |release| release.version.as_str())
    }
}

/// Writes a file so that readers see the old or the new one.
fn replace(path: &Path, text: &str) -> Result<()> {
    let new = path.with_extension("new");
    std::fs::write(&new, text)
        .and_then(|()| std::fs::rename(&new, path))
        .with_context(|| format!("{}: cannot be written", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_list_the_releases_where_they_are_to() {
        let release = |version: &str| DemoRelease {
            version: version.to_owned(),
            image: format!("127.0.0.1:5000/atoll/release@sha256:{version}"),
        };
        let content = DemoContent {
            releases: vec![release("4.18.30"), release("4.18.31")],
            live_iso: "/data/demo/live.iso".into(),
            os_version: "418.94".into(),
            offer: ContentOffer::Settings,
            settings: "/data/demo/settings.env".into(),
            installer: "/bin/true".into(),
        };
        assert_eq!(content.version(), "4.18.31");
        let text = content.env();
        let value = |name: &str| {
            let mut lines = text.lines();
            let line = lines.find_map(|line| line.strip_prefix(&format!("{name}=")));
            serde_json::from_str::<serde_json::Value>(line.unwrap()).unwrap()
        };
        let releases = value("RELEASE_IMAGES");
        assert_eq!(
            releases[1]["url"],
            "127.0.0.1:5000/atoll/release@sha256:4.18.31"
        );
        assert_eq!(releases[0]["default"], false);
        assert_eq!(releases[1]["default"], true);
        assert_eq!(value("OS_IMAGES")[0]["url"], "file:///data/demo/live.iso");
        let content = DemoContent {
            offer: ContentOffer::Registry,
            ..content
        };
        assert_eq!(content.env(), "DUMMY_IGNITION=False\n");
    }

    #[test]
    fn without_content_there_is_none() {
        assert!(DemoContent::read(Path::new("/none")).unwrap().is_none());
    }
}
