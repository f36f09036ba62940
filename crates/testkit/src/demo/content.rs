//! Content of the services: a live image and releases, and the settings that name them.
//!
//! OS images and release images are settings of the services, so the content is made first; the services
//! are restarted with the settings file.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::console::Console;
use super::state::DemoRegistry;
use crate::{iso, release};

/// Versions are `MINOR.FIRST_PATCH` and up.
const MINOR: &str = "4.18";
const FIRST_PATCH: usize = 30;
/// Namespace of releases in the registry.
const NAMESPACE: &str = "atoll";

/// The content of the demo.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DemoContent {
    /// Releases in the registry, oldest first.
    pub releases: Vec<DemoRelease>,
    /// The live image.
    pub live_iso: PathBuf,
    /// Version of the operating system in it.
    pub os_version: String,
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
        let published = release::publish(
            &client,
            &registry.address,
            NAMESPACE,
            &self.installer,
            &version,
        )
        .await
        .with_context(|| format!("release {version} cannot be pushed to {}", registry.address))?;
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

    /// The version that is installed: the newest.
    pub fn version(&self) -> &str {
        self.releases
            .last()
            .map_or("", |release| release.version.as_str())
    }

    /// The settings, as container engines read them.
    fn env(&self) -> String {
        let os_images = json!([{
            "openshift_version": MINOR, "cpu_architecture": "x86_64",
            "url": format!("file://{}", self.live_iso.display()), "version": self.os_version,
        }]);
        let releases: Vec<_> = self
            .releases
            .iter()
            .map(|release| {
                json!({
                    "openshift_version": MINOR, "cpu_architecture": "x86_64", "cpu_architectures": ["x86_64"],
                    "url": release.image, "version": release.version, "support_level": "production",
                    "default": release.version == self.version(),
                })
            })
            .collect();
        let lines = [
            ("OS_IMAGES", os_images.to_string()),
            ("RELEASE_IMAGES", json!(releases).to_string()),
            ("DUMMY_IGNITION", "False".to_owned()),
        ];
        lines
            .iter()
            .map(|(name, value)| [name, "=", value, "\n"].concat())
            .collect()
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

    fn release(version: &str) -> DemoRelease {
        DemoRelease {
            version: version.to_owned(),
            image: format!("127.0.0.1:5000/atoll/release@sha256:{version}"),
        }
    }

    #[test]
    fn the_settings_list_all_releases() {
        let content = DemoContent {
            releases: vec![release("4.18.30"), release("4.18.31")],
            live_iso: "/data/demo/live.iso".into(),
            os_version: "418.94".into(),
            settings: "/data/demo/settings.env".into(),
            installer: "/bin/true".into(),
        };
        let text = content.env();
        let value = |name: &str| {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix(&format!("{name}=")));
            line.unwrap().to_owned()
        };
        let releases: serde_json::Value = serde_json::from_str(&value("RELEASE_IMAGES")).unwrap();
        assert_eq!(
            releases[1]["url"],
            "127.0.0.1:5000/atoll/release@sha256:4.18.31"
        );
        assert_eq!(
            (&releases[0]["default"], &releases[1]["default"]),
            (&json!(false), &json!(true))
        );
        // The image service takes texts only.
        let images: Vec<std::collections::BTreeMap<String, String>> =
            serde_json::from_str(&value("OS_IMAGES")).unwrap();
        assert_eq!(images[0]["url"], "file:///data/demo/live.iso");
        // Images of hosts are those of the release.
        assert_eq!(text.lines().count(), 3, "{text}");
        assert_eq!(content.version(), "4.18.31");
    }

    #[test]
    fn without_content_there_is_none() {
        assert!(DemoContent::read(Path::new("/none")).unwrap().is_none());
    }
}
