//! Manifests that users add to an installation.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use model::Error;
use model::cluster::ClusterStatus;
use model::ids::ClusterId;
use model::manifests::{Manifest, ManifestFolder, ManifestSource};

use super::{App, Scope, Work};
use crate::files::{GENERATED_MANIFESTS, Object, USER_MANIFESTS};
use crate::install;

/// Units: bytes of one manifest.
pub(crate) const SIZE_LIMIT: usize = 1 << 20;
/// Units: bytes of a file's name. File systems take 255; the installer and archives add to it.
const NAME_LIMIT: usize = 200;
const EXTENSIONS: &[&str] = &[".yaml", ".yml", ".json"];
const PATCH_EXTENSIONS: &[&str] = &[".yaml.patch", ".yml.patch"];

/// Where a manifest lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Folder of the installer.
    pub(crate) folder: ManifestFolder,
    /// Name of the file.
    pub(crate) file_name: String,
}

impl Place {
    fn object(&self) -> String {
        format!("{USER_MANIFESTS}/{}/{}", self.folder, self.file_name)
    }

    fn shown(&self) -> Manifest {
        Manifest {
            folder: Some(self.folder),
            file_name: self.file_name.clone(),
            manifest_source: Some(ManifestSource::User),
        }
    }
}

/// What is wrong with the name of a manifest; none when it can be used.
pub(crate) fn wrong_name(name: &str) -> Option<String> {
    let told = |problem: &str| Some(format!("manifest file name {name:?} {problem}"));
    if name.len() > NAME_LIMIT {
        return told("is too long: it may have 200 bytes");
    }
    if name.contains('\\') || name.contains(char::is_control) {
        return told("must not hold backslashes or control characters");
    }
    if name.contains('/') {
        return told("must not hold a path: name the folder in its own member");
    }
    if name.starts_with(['.', ' ']) {
        return told("must not start with a dot or a blank");
    }
    let stem = patched(name).or_else(|| {
        EXTENSIONS
            .iter()
            .find_map(|extension| name.strip_suffix(extension))
    });
    match stem {
        Some(stem) if !stem.is_empty() => None,
        _ => told("must end with .yaml, .yml, .json, .yaml.patch or .yml.patch"),
    }
}

/// What a patch's name says before its extension; none for the name of another manifest.
fn patched(name: &str) -> Option<&str> {
    PATCH_EXTENSIONS.iter().find_map(|extension| {
        let (stem, suffix) = name.split_once(extension)?;
        suffix
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_')
            .then_some(stem)
    })
}

/// Decodes and checks the content of a manifest.
pub(crate) fn content(name: &str, encoded: &str) -> Result<Vec<u8>, Error> {
    let refuse = |problem: String| {
        Err(Error::invalid(
            "content",
            format!("of manifest {name} {problem}"),
        ))
    };
    let bytes = match BASE64.decode(encoded.trim()) {
        Ok(bytes) => bytes,
        Err(error) => return refuse(format!("is not base64: {error}")),
    };
    if bytes.is_empty() {
        return refuse("is empty".to_owned());
    }
    if bytes.len() > SIZE_LIMIT {
        return refuse(format!("is larger than {SIZE_LIMIT} bytes"));
    }
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        Err(error) => return refuse(format!("is not UTF-8: {error}")),
    };
    if name.to_ascii_lowercase().ends_with(".json") {
        if let Err(error) = serde_json::from_str::<serde_json::Value>(text) {
            return refuse(format!("is not JSON: {error}"));
        }
    } else if patched(name).is_some() {
        if let Err(problem) = install::check_patch(text) {
            return refuse(format!("is not a JSON patch in YAML: {problem}"));
        }
    } else if let Err(error) = serde_yaml::from_multiple::<serde_json::Value>(text) {
        return refuse(format!("is not YAML: {error}"));
    }
    Ok(bytes)
}

impl App {
    /// The manifests of a cluster: the users', and those of the service when asked for.
    pub(crate) async fn list_manifests(
        &self,
        id: ClusterId,
        with_system: bool,
    ) -> Result<Vec<Manifest>, Error> {
        self.stored_cluster(id).await?;
        let mut prefixes = vec![(USER_MANIFESTS, ManifestSource::User)];
        if with_system {
            prefixes.push((GENERATED_MANIFESTS, ManifestSource::System));
        }
        let mut found = Vec::new();
        for (prefix, source) in prefixes {
            for name in self.store.list(id, prefix).await? {
                let mut parts = name.as_str().splitn(3, '/').skip(1);
                if let (Some(folder), Some(file_name)) = (parts.next(), parts.next())
                    && let Ok(folder) = folder.parse()
                {
                    found.push(Manifest {
                        folder: Some(folder),
                        file_name: file_name.to_owned(),
                        manifest_source: Some(source),
                    });
                }
            }
        }
        Ok(found)
    }

    /// Stores a manifest, in place of one of the same folder and name.
    ///
    /// Errors: Invalid – the cluster takes none now, has too many, or the other folder has one of that name; TooLarge –
    /// a quota.
    pub(crate) async fn create_manifest(
        &self,
        id: ClusterId,
        place: &Place,
        bytes: Vec<u8>,
    ) -> Result<Manifest, Error> {
        self.check_takes_manifests(id).await?;
        for folder in ManifestFolder::ALL {
            let other = Place {
                folder: *folder,
                file_name: place.file_name.clone(),
            };
            if other != *place && self.store.contains(id, &other.object()).await? {
                return Err(Error::invalid(
                    "file_name",
                    format!(
                        "{} exists in folder {folder} already: names are unique over both folders",
                        place.file_name
                    ),
                ));
            }
        }
        self.check_manifest_count(id, place).await?;
        self.store.put_within(id, &place.object(), bytes).await?;
        self.count_manifests(id).await?;
        Ok(place.shown())
    }

    /// Renames a manifest, moves it, or replaces its content.
    ///
    /// Errors: NotFound; Invalid.
    pub(crate) async fn update_manifest(
        &self,
        id: ClusterId,
        from: &Place,
        to: &Place,
        bytes: Option<Vec<u8>>,
    ) -> Result<Manifest, Error> {
        self.check_takes_manifests(id).await?;
        let old = self.manifest(id, from).await?;
        let bytes = match bytes {
            Some(bytes) => bytes,
            None => old.bytes().await?,
        };
        if from != to && self.store.contains(id, &to.object()).await? {
            return Err(Error::invalid(
                "updated_file_name",
                format!("{} exists in folder {} already", to.file_name, to.folder),
            ));
        }
        self.store.put_within(id, &to.object(), bytes).await?;
        if from != to {
            self.store.delete(id, &from.object()).await?;
        }
        Ok(to.shown())
    }

    /// Deletes a manifest.
    ///
    /// Errors: NotFound; Invalid – the cluster takes no changes of manifests now.
    pub(crate) async fn delete_manifest(&self, id: ClusterId, place: &Place) -> Result<(), Error> {
        self.check_takes_manifests(id).await?;
        if !self.store.delete(id, &place.object()).await? {
            return Err(Error::not_found("manifest", &place.file_name));
        }
        self.count_manifests(id).await
    }

    /// A manifest of a user.
    pub(crate) async fn manifest(&self, id: ClusterId, place: &Place) -> Result<Object, Error> {
        match self.store.get(id, &place.object()).await {
            Err(Error::NotFound { .. }) => Err(Error::not_found("manifest", &place.file_name)),
            result => result,
        }
    }

    async fn check_takes_manifests(&self, id: ClusterId) -> Result<(), Error> {
        let stored = self.stored_cluster(id).await?;
        match stored.snapshot.cluster.status {
            ClusterStatus::PendingForInput | ClusterStatus::Insufficient | ClusterStatus::Ready => {
                Ok(())
            }
            status => Err(Error::invalid(
                "cluster_id",
                format!("cluster {id} is {status}: manifests change only before an installation"),
            )),
        }
    }

    async fn check_manifest_count(&self, id: ClusterId, place: &Place) -> Result<(), Error> {
        let known = self.store.list(id, USER_MANIFESTS).await?;
        let limit = self.settings.max_manifests_per_cluster;
        let is_new = !known.iter().any(|name| name.as_str() == place.object());
        if is_new && known.len() >= limit {
            return Err(Error::invalid(
                "file_name",
                format!(
                    "cluster {id} has {limit} manifests, the most that are taken (MAX_MANIFESTS_PER_CLUSTER): put \
                     several documents into one file"
                ),
            ));
        }
        Ok(())
    }

    async fn count_manifests(&self, id: ClusterId) -> Result<(), Error> {
        let has_any = !self.store.list(id, USER_MANIFESTS).await?.is_empty();
        let decide = |work: &mut Work| {
            work.snapshot.files.user_manifests = has_any;
            work.refresh(&self.policy);
            Ok(())
        };
        self.change("count manifests", Scope::Cluster(id), decide)
            .await
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for name in [
            "a.yaml",
            "a.yml",
            "a.json",
            "a.yaml.patch",
            "a.yml.patch_ai_1",
        ] {
            assert_eq!(wrong_name(name), None, "{name}");
        }
        for name in [
            "",
            "a",
            "a.txt",
            ".yaml",
            ".a.yaml",
            " a.yaml",
            "x/a.yaml",
            "a.json.patch",
            "a.yaml.patch-1",
            "a\nb.yaml",
        ] {
            assert!(wrong_name(name).is_some(), "{name}");
        }
        assert!(wrong_name(&format!("{}.yaml", "x".repeat(196))).is_some());
        assert_eq!(wrong_name(&format!("{}.yaml", "x".repeat(195))), None);
    }

    // limit: manifest
    #[test]
    fn a_manifest_is_taken_up_to_its_bound() {
        let comment = |length| BASE64.encode(format!("{}\na: 1\n", "#".repeat(length - 6)));
        assert!(content("a.yaml", &comment(SIZE_LIMIT)).is_ok());
        assert!(content("a.yaml", &comment(SIZE_LIMIT + 1)).is_err());
    }

    #[test]
    fn contents() {
        assert!(content("a.yaml", &BASE64.encode("a: 1\n---\nb: 2\n")).is_ok());
        assert!(content("a.json", &BASE64.encode("{}")).is_ok());
        for wrong in ["", "***", &BASE64.encode("a: [")] {
            assert!(content("a.yaml", wrong).is_err(), "{wrong}");
        }
        assert!(content("a.json", &BASE64.encode("a: 1")).is_err());
        let patch = BASE64.encode("- op: remove\n  path: /a\n");
        assert!(content("a.yaml.patch", &patch).is_ok());
        for wrong in ["a: 1", "- op: dance\n  path: /a\n", "- path: /a\n"] {
            assert!(
                content("a.yaml.patch", &BASE64.encode(wrong)).is_err(),
                "{wrong}"
            );
        }
    }
}
