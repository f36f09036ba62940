//! What the services install from: a live image and a release, and the settings that tell of them.
//!
//! OS images and release images are settings of the services, so the content is made first; the services
//! are restarted with the settings file.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::console::Console;
use crate::iso;

/// Version of the release.
const VERSION: &str = "4.18.30";
/// Version under which users ask for it.
const MINOR: &str = "4.18";

/// The content of the demo.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Content {
    /// Version that the listing must show.
    pub version: String,
    /// The release, by digest.
    pub release_image: String,
    /// The live image.
    pub live_iso: PathBuf,
    /// The settings file for the services.
    pub settings: String,
}

impl Content {
    /// Where the content of a data directory is.
    pub fn directory(data: &Path) -> PathBuf {
        data.join("demo")
    }

    /// Reads what [`Content::write`] left; `None` when there is nothing yet.
    ///
    /// Errors: the record is damaged.
    pub fn read(data: &Path) -> Result<Option<Self>> {
        let path = Self::directory(data).join("content.json");
        let Ok(text) = std::fs::read_to_string(&path) else {
            return Ok(None);
        };
        serde_json::from_str(&text)
            .map(Some)
            .with_context(|| format!("{}: is damaged, remove it", path.display()))
    }

    /// Makes the live image and writes the settings that tell of it and of the release at `release_image`.
    ///
    /// Errors: those of the file system.
    pub fn write(
        data: &Path,
        registry: &str,
        registry_ca: &Path,
        release_image: &str,
        console: &Console,
    ) -> Result<Self> {
        let directory = std::path::absolute(Self::directory(data))?;
        std::fs::create_dir_all(&directory)
            .with_context(|| format!("{}: cannot be made", directory.display()))?;
        let options = iso::Options::default();
        let live_iso = directory.join(format!("live-{}.iso", options.os_version));
        let written = iso::write(&live_iso, &options)
            .with_context(|| format!("{}: cannot be made", live_iso.display()))?;
        console.step(format!(
            "live image {} made: {} MiB",
            options.volume_id(),
            written.length >> 20
        ));
        console.detail(live_iso.display().to_string());
        let settings = directory.join("settings.env");
        let content = Self {
            version: VERSION.to_owned(),
            release_image: release_image.to_owned(),
            live_iso,
            settings: settings.display().to_string(),
        };
        replace(
            &directory.join("content.json"),
            &serde_json::to_string_pretty(&content)?,
        )?;
        // Last: the services restart when they see it, and then everything it names must be there.
        replace(
            &settings,
            &content.env(registry, registry_ca, &options.os_version),
        )?;
        console.step(format!(
            "settings for the services written to {}",
            settings.display()
        ));
        Ok(content)
    }

    /// The settings, as container engines read them.
    fn env(&self, registry: &str, registry_ca: &Path, os_version: &str) -> String {
        let os_images = json!([{
            "openshift_version": MINOR, "cpu_architecture": "x86_64",
            "url": format!("file://{}", self.live_iso.display()), "version": os_version,
        }]);
        let release_images = json!([{
            "openshift_version": MINOR, "cpu_architecture": "x86_64", "cpu_architectures": ["x86_64"],
            "url": self.release_image, "version": self.version, "default": true, "support_level": "production",
        }]);
        let image = |name: &str| format!("{registry}/atoll/{name}:demo");
        let lines = [
            ("OS_IMAGES", os_images.to_string()),
            ("RELEASE_IMAGES", release_images.to_string()),
            ("AGENT_DOCKER_IMAGE", image("assisted-installer-agent")),
            ("INSTALLER_IMAGE", image("assisted-installer")),
            ("CONTROLLER_IMAGE", image("assisted-installer-controller")),
            ("MIRROR_CA_PATH", registry_ca.display().to_string()),
            ("DUMMY_IGNITION", "False".to_owned()),
        ];
        lines
            .map(|(name, value)| {
                format!(
                    "{name}={value}
"
                )
            })
            .concat()
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
    fn the_settings_name_everything_by_digest_and_path() {
        let directory = tempfile::tempdir().unwrap();
        let release = "127.0.0.1:5000/ocp/release@sha256:0123";
        let console = Console::new(true);
        let content = Content::write(
            directory.path(),
            "127.0.0.1:5000",
            Path::new("/ca.pem"),
            release,
            &console,
        )
        .unwrap();
        let text = std::fs::read_to_string(&content.settings).unwrap();
        let value = |name: &str| {
            text.lines()
                .find_map(|l| l.strip_prefix(&format!("{name}=")))
                .unwrap()
                .to_owned()
        };
        let releases: serde_json::Value = serde_json::from_str(&value("RELEASE_IMAGES")).unwrap();
        assert_eq!(releases[0]["url"], release);
        let images: Vec<std::collections::BTreeMap<String, String>> =
            serde_json::from_str(&value("OS_IMAGES")).unwrap();
        assert!(Path::new(images[0]["url"].strip_prefix("file://").unwrap()).is_file());
        assert_eq!(value("MIRROR_CA_PATH"), "/ca.pem");
        assert_eq!(
            Content::read(directory.path()).unwrap().unwrap().version,
            VERSION
        );
        assert!(Content::read(Path::new("/none")).unwrap().is_none());
    }
}
