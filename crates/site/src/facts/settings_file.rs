//! Settings of the services in a file of lines `NAME=value`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use api_server::AuthType;
use doctor::{BootImage, NamedImage};
use model::release_payload::{COMPONENTS, ComponentImages};
use model::versions::{OsImage, ReleaseImage};
use serde::de::DeserializeOwned;
use service::settings::{Setting, env_lines, not_a_line};
use service::{Error, ResultExt as _};

/// The lines of the file.
pub(super) struct SettingsFile {
    path: PathBuf,
    values: BTreeMap<String, String>,
}

impl SettingsFile {
    /// Errors: an unreadable file, a malformed line.
    pub(super) fn read(path: PathBuf) -> Result<Self, Error> {
        let doing = || format!("reading {}", path.display());
        let text = std::fs::read_to_string(&path).doing(doing)?;
        let lines =
            env_lines(&text).map_err(|line| Error::new(doing(), not_a_line(&path, line)))?;
        let values = lines
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let values = values.collect();
        Ok(Self { path, values })
    }

    /// A setting that is not empty.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.values
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// The elements of a setting with commas.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        let parts = self.value(name).unwrap_or_default().split(',');
        parts
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// A setting, if it is set.
    ///
    /// Errors: a malformed value.
    pub(super) fn parsed<T: Setting>(&self, name: &str) -> Result<Option<T>, Error> {
        let value = self.value(name).map(T::parse).transpose();
        value.map_err(|reason| self.invalid(name, &reason))
    }

    /// Rights of the users, by AUTH_TYPE.
    ///
    /// Errors: a malformed value.
    pub(super) fn access(&self) -> Result<String, Error> {
        let kind: Option<AuthType> = self.parsed("AUTH_TYPE")?;
        Ok(kind.unwrap_or_default().access().to_owned())
    }

    /// The elements of a setting with a JSON array.
    ///
    /// Errors: a malformed value.
    pub(super) fn json<T: DeserializeOwned>(&self, name: &str) -> Result<Vec<T>, Error> {
        let parsed = serde_json::from_str(self.value(name).unwrap_or("[]"));
        parsed.map_err(|e| self.invalid(name, &e.to_string()))
    }

    /// Releases; none where those of the registry are on offer, which the API server alone knows.
    ///
    /// Errors: a malformed value.
    pub(super) fn releases(&self) -> Result<Option<Vec<ReleaseImage>>, Error> {
        let listed: Vec<ReleaseImage> = self.json("RELEASE_IMAGES")?;
        Ok(Some(listed).filter(|listed| !listed.is_empty() || !self.has_content_registry()))
    }

    fn has_content_registry(&self) -> bool {
        let names = ["CONTENT_REGISTRY", "ARCHIVES_REGISTRY"];
        names.iter().any(|name| self.value(name).is_some())
    }

    /// Boot images, as [`Self::releases`]; `own_path` is the path here of one of the services.
    ///
    /// Errors: a malformed list.
    pub(super) fn boot_images(
        &self,
        own_path: impl Fn(&str) -> PathBuf,
    ) -> Result<Option<Vec<BootImage>>, Error> {
        let listed: Vec<OsImage> = self.json("OS_IMAGES")?;
        let image = |image: OsImage| BootImage {
            path: image.url.strip_prefix("file://").map(&own_path),
            cpu_architecture: image.cpu_architecture.as_str().to_owned(),
            openshift_version: image.openshift_version,
            os_stream: image.os_stream,
            url: image.url,
        };
        if listed.is_empty() && self.has_content_registry() {
            return Ok(None);
        }
        Ok(Some(listed.into_iter().map(image).collect()))
    }

    /// Images that hosts run in place of those of the releases.
    pub(super) fn components(&self) -> ComponentImages {
        let [agent, installer, controller] =
            COMPONENTS.map(|one| self.value(one.setting).unwrap_or_default().to_owned());
        ComponentImages {
            agent,
            installer,
            controller,
        }
    }

    /// Images of catalogs.
    pub(super) fn images(&self) -> Vec<NamedImage> {
        let catalogs = self.list("CATALOGS");
        let catalogs = catalogs.iter().filter_map(|entry| {
            let (name, source) = entry.split_once('=')?;
            let is_folder = source.starts_with('/') || source.starts_with("oci:");
            (!is_folder).then(|| NamedImage {
                setting: format!("CATALOGS ({name})"),
                reference: source.to_owned(),
            })
        });
        catalogs.collect()
    }

    /// An error about one setting.
    pub(super) fn invalid(&self, name: &str, reason: &str) -> Error {
        Error::new(
            format!("reading {name} in {}", self.path.display()),
            reason.to_owned(),
        )
    }
}
