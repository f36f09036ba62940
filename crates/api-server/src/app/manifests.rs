//! Custom manifests of an installation.
//!
//! Source: openshift/assisted-service, for the rules of names and contents; the limit of names is an addition.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cluster_files::{FileStore, GENERATED_MANIFESTS, Object, USER_MANIFESTS};
use model::Error;
use model::cluster::ClusterStatus;
use model::ids::ClusterId;
use model::manifests::{ClusterManifest, ManifestFolder, ManifestSource};

use super::owners::file_owner;
use super::{ClusterStore, ClusterTransaction, Scope};
use crate::db::Database;

/// Bound of one manifest. Units: bytes.
pub(crate) const SIZE_LIMIT: usize = 1 << 20;
/// Bound of a file name. Units: bytes. File systems have 255; the installer and archives add to it.
const NAME_LIMIT: usize = 200;
/// Pattern of file names in the API description.
pub(crate) const NAME_PATTERN: &str = r"^[^\/]*\.(json|ya?ml(\.patch_?[a-zA-Z0-9_]*)?)$";
const EXTENSIONS: &[&str] = &[".yaml", ".yml", ".json"];
const PATCH_EXTENSIONS: &[&str] = &[".yaml.patch", ".yml.patch"];

/// Folder and name of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ManifestPath {
    /// Folder of the installer.
    pub(crate) folder: ManifestFolder,
    /// Name of the file.
    pub(crate) file_name: String,
}

impl ManifestPath {
    fn object(&self) -> String {
        format!("{USER_MANIFESTS}/{}/{}", self.folder, self.file_name)
    }

    fn shown(&self) -> ClusterManifest {
        ClusterManifest {
            folder: Some(self.folder),
            file_name: self.file_name.clone(),
            manifest_source: Some(ManifestSource::User),
        }
    }
}

/// Whether a file name fits [`NAME_PATTERN`]: no path, and a known extension.
pub(crate) fn matches_pattern(name: &str) -> bool {
    !name.contains('/')
        && (patch_stem(name).is_some()
            || EXTENSIONS.iter().any(|extension| name.ends_with(extension)))
}

/// The problem of a manifest's file name that fits [`NAME_PATTERN`]; none if it is valid.
/// Source: assisted-service, internal/manifests/manifests.go, validateManifestFileNames.
pub(crate) fn name_problem(name: &str) -> Option<String> {
    let report = |problem: &str| Some(format!("manifest file name {name:?} {problem}"));
    if name.len() > NAME_LIMIT {
        return report("is too long: the limit is 200 bytes");
    }
    if name.contains(['\\', ' ']) || name.contains(char::is_control) {
        return report("must not contain spaces, backslashes or control characters");
    }
    if name.starts_with('.') {
        return report("must not start with a dot");
    }
    None
}

/// The stem of a patch's name; none for other manifests.
fn patch_stem(name: &str) -> Option<&str> {
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
    } else if patch_stem(name).is_some() {
        if let Err(problem) = preparation::check_patch(text) {
            return refuse(format!("is not a JSON patch in YAML: {problem}"));
        }
    } else if let Err(error) = serde_yaml::from_multiple::<serde_json::Value>(text) {
        return refuse(format!("is not YAML: {error}"));
    }
    Ok(bytes)
}

/// Custom manifests of clusters.
#[derive(Debug)]
pub(crate) struct Manifests {
    pub(super) db: Database,
    pub(super) clusters: Arc<ClusterStore>,
    pub(super) files: FileStore,
    /// `MAX_MANIFESTS_PER_CLUSTER`.
    pub(super) max_per_cluster: usize,
}

impl Manifests {
    /// The custom manifests of a cluster; with generated ones if `with_system`.
    pub(crate) async fn list(
        &self,
        id: ClusterId,
        with_system: bool,
    ) -> Result<Vec<ClusterManifest>, Error> {
        self.clusters.stored(id).await?;
        let mut prefixes = vec![(USER_MANIFESTS, ManifestSource::User)];
        if with_system {
            prefixes.push((GENERATED_MANIFESTS, ManifestSource::System));
        }
        let mut found = Vec::new();
        for (prefix, source) in prefixes {
            for name in self.files.list(id, prefix).await? {
                let mut parts = name.as_str().splitn(3, '/').skip(1);
                if let (Some(folder), Some(file_name)) = (parts.next(), parts.next())
                    && let Ok(folder) = folder.parse()
                {
                    found.push(ClusterManifest {
                        folder: Some(folder),
                        file_name: file_name.to_owned(),
                        manifest_source: Some(source),
                    });
                }
            }
        }
        Ok(found)
    }

    /// Stores a manifest; replaces one of the same folder and name.
    ///
    /// Errors: Invalid – the cluster's state, `MAX_MANIFESTS_PER_CLUSTER`, or the name exists in the other folder;
    /// TooLarge – a quota.
    pub(crate) async fn create(
        &self,
        id: ClusterId,
        place: &ManifestPath,
        bytes: Vec<u8>,
    ) -> Result<ClusterManifest, Error> {
        self.check_is_open(id).await?;
        for folder in ManifestFolder::ALL {
            let other = ManifestPath {
                folder: *folder,
                file_name: place.file_name.clone(),
            };
            if other != *place && self.files.contains(id, &other.object()).await? {
                return Err(Error::invalid(
                    "file_name",
                    format!(
                        "{} exists in folder {folder} already: names are unique over both folders",
                        place.file_name
                    ),
                ));
            }
        }
        self.check_count(id, place).await?;
        let owner = file_owner(&self.db, id).await?;
        self.files.put_within(owner, &place.object(), bytes).await?;
        self.count(id).await?;
        Ok(place.shown())
    }

    /// Renames a manifest, moves it, or replaces its content.
    ///
    /// Errors: NotFound; Invalid.
    pub(crate) async fn update(
        &self,
        id: ClusterId,
        from: &ManifestPath,
        to: &ManifestPath,
        bytes: Option<Vec<u8>>,
    ) -> Result<ClusterManifest, Error> {
        self.check_is_open(id).await?;
        let old = self.get(id, from).await?;
        let bytes = match bytes {
            Some(bytes) => bytes,
            None => old.bytes().await?,
        };
        if from != to && self.files.contains(id, &to.object()).await? {
            return Err(Error::invalid(
                "updated_file_name",
                format!("{} exists in folder {} already", to.file_name, to.folder),
            ));
        }
        let owner = file_owner(&self.db, id).await?;
        self.files.put_within(owner, &to.object(), bytes).await?;
        if from != to {
            self.files.delete(id, &from.object()).await?;
        }
        Ok(to.shown())
    }

    /// Deletes a manifest from the first folder that has it.
    ///
    /// Errors: NotFound; Invalid – the cluster's state.
    pub(crate) async fn delete(
        &self,
        id: ClusterId,
        folders: &[ManifestFolder],
        file_name: &str,
    ) -> Result<(), Error> {
        self.check_is_open(id).await?;
        for folder in folders {
            let place = ManifestPath {
                folder: *folder,
                file_name: file_name.to_owned(),
            };
            if self.files.delete(id, &place.object()).await? {
                return self.count(id).await;
            }
        }
        Err(Error::not_found("manifest", file_name))
    }

    /// A custom manifest.
    pub(crate) async fn get(&self, id: ClusterId, place: &ManifestPath) -> Result<Object, Error> {
        let generated = format!("{GENERATED_MANIFESTS}/{}/{}", place.folder, place.file_name);
        for object in [place.object(), generated] {
            match self.files.get(id, &object).await {
                Err(Error::NotFound { .. }) => {}
                result => return result,
            }
        }
        Err(Error::not_found("manifest", &place.file_name))
    }

    async fn check_is_open(&self, id: ClusterId) -> Result<(), Error> {
        let stored = self.clusters.stored(id).await?;
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

    async fn check_count(&self, id: ClusterId, place: &ManifestPath) -> Result<(), Error> {
        let known = self.files.list(id, USER_MANIFESTS).await?;
        let limit = self.max_per_cluster;
        let is_new = !known.iter().any(|name| name.as_str() == place.object());
        if is_new && known.len() >= limit {
            return Err(Error::invalid(
                "file_name",
                format!(
                    "cluster {id} has reached the limit of {limit} manifests (MAX_MANIFESTS_PER_CLUSTER): put several \
                    documents into one file"
                ),
            ));
        }
        Ok(())
    }

    async fn count(&self, id: ClusterId) -> Result<(), Error> {
        let has_any = !self.files.list(id, USER_MANIFESTS).await?.is_empty();
        let decide = |change: &mut ClusterTransaction| {
            change.snapshot.files.user_manifests = has_any;
            change.refresh();
            Ok(())
        };
        self.clusters
            .change("count manifests", Scope::Cluster(id), decide)
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
            assert!(matches_pattern(name), "{name}");
            assert_eq!(name_problem(name), None, "{name}");
        }
        for name in [
            "",
            "a",
            "a.txt",
            "x/a.yaml",
            "a.json.patch",
            "a.yaml.patch-1",
        ] {
            assert!(!matches_pattern(name), "{name}");
        }
        for name in [
            ".yaml",
            ".a.yaml",
            " a.yaml",
            "a b.yaml",
            " .yaml",
            "a\nb.yaml",
            "a\\b.yaml",
        ] {
            assert!(matches_pattern(name), "{name}");
            assert!(name_problem(name).is_some(), "{name}");
        }
        assert!(name_problem(&format!("{}.yaml", "x".repeat(196))).is_some());
        assert_eq!(name_problem(&format!("{}.yaml", "x".repeat(195))), None);
    }

    // limit: manifest
    #[test]
    fn manifests_above_the_size_limit_are_refused() {
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
