//! Generated and custom manifests, written over those of the installer.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cluster_files::{FileStore, USER_MANIFESTS};
use model::ids::ClusterId;
use rules::manifests::SystemManifest;
use serde_json::{Value, json};

use crate::failure::{PreparationFailure, blocking};
use crate::patch::{self, Operation};

/// The installer's folders, in the order of a patch's search for its manifest.
const FOLDERS: [&str; 2] = ["openshift", "manifests"];
const INFRASTRUCTURE: &str = "manifests/cluster-infrastructure-02-config.yml";

/// Writes generated and custom manifests into `folder`, splits custom files of several documents, applies patches. A
/// custom manifest overrides a generated one of the same name.
pub(crate) async fn write_all(
    store: &FileStore,
    cluster: ClusterId,
    generated: &[SystemManifest],
    folder: &Path,
) -> Result<(), PreparationFailure> {
    for SystemManifest { file_name, content } in generated {
        write(
            folder,
            &format!("openshift/{file_name}"),
            content.as_bytes(),
        )?;
    }
    for name in store.list(cluster, USER_MANIFESTS).await? {
        let content = store.get(cluster, name.as_str()).await?.bytes().await?;
        let relative = name.as_str()[USER_MANIFESTS.len() + 1..].to_owned();
        let folder = folder.to_owned();
        blocking(move || write_custom(&folder, &relative, &content)).await?;
    }
    let folder = folder.to_owned();
    blocking(move || apply_patches(&folder)).await
}

/// Sets the infrastructure topology to HighlyAvailable: with one worker, routers also run on the control plane.
pub(crate) fn set_highly_available_ingress(folder: &Path) -> Result<(), PreparationFailure> {
    let operations = vec![Operation::Replace {
        path: "/status/infrastructureTopology".to_owned(),
        value: json!("HighlyAvailable"),
    }];
    apply(&folder.join(INFRASTRUCTURE), INFRASTRUCTURE, operations)
}

fn write_custom(folder: &Path, name: &str, content: &[u8]) -> Result<(), PreparationFailure> {
    let extension = Path::new(name).extension().unwrap_or_default();
    let is_yaml = extension == "yaml" || extension == "yml";
    let documents = if is_yaml {
        documents(name, content)?
    } else {
        Vec::new()
    };
    if documents.len() < 2 {
        return write(folder, name, content);
    }
    let stem = &name[..name.len() - extension.len() - 1];
    let extension = extension.to_string_lossy();
    for (index, document) in documents.iter().enumerate() {
        // "part" avoids collisions with files that the user numbered.
        let part = format!("{stem}-part-{index:02}.{extension}");
        write(folder, &part, yaml(document).as_bytes())?;
    }
    Ok(())
}

fn documents(name: &str, content: &[u8]) -> Result<Vec<Value>, PreparationFailure> {
    let mut documents: Vec<Value> = serde_yaml::from_slice_multiple(content)
        .map_err(|error| unreadable(name, &error.to_string()))?;
    documents.retain(|document| !document.is_null());
    Ok(documents)
}

/// Checks that `text` is a patch of a manifest.
pub fn check_patch(text: &str) -> Result<(), String> {
    operations(text.as_bytes()).map(drop)
}

fn operations(content: &[u8]) -> Result<Vec<Operation>, String> {
    serde_yaml::from_slice(content).map_err(|error| error.to_string())
}

/// Applies each `x.yaml.patch…` to `x.yaml`, in order of the patches' names, and removes the patches.
fn apply_patches(folder: &Path) -> Result<(), PreparationFailure> {
    for name in FOLDERS {
        let mut patches: Vec<PathBuf> = entries(&folder.join(name))?;
        patches.retain(|path| {
            path.extension()
                .is_some_and(|extension| extension.to_string_lossy().starts_with("patch"))
        });
        patches.sort();
        for path in patches {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            let shown = format!("{name}/{file}");
            let content =
                fs::read(&path).map_err(|error| unreadable(&shown, &error.to_string()))?;
            let operations = operations(&content).map_err(|error| unreadable(&shown, &error))?;
            let manifest = path.with_extension("");
            let manifest = manifest.file_name().unwrap_or_default();
            let target = FOLDERS
                .iter()
                .map(|name| folder.join(name).join(manifest))
                .find(|path| path.is_file())
                .ok_or_else(|| {
                    let manifest = manifest.to_string_lossy();
                    PreparationFailure::new(format!(
                        "manifest patch {shown}: manifest {manifest} not found"
                    ))
                })?;
            apply(&target, &shown, operations)?;
            fs::remove_file(&path).map_err(|error| unwritable(&shown, &error))?;
        }
    }
    Ok(())
}

fn apply(target: &Path, shown: &str, operations: Vec<Operation>) -> Result<(), PreparationFailure> {
    let content = fs::read(target).map_err(|error| unreadable(shown, &error.to_string()))?;
    let mut document: Value =
        serde_yaml::from_slice(&content).map_err(|error| unreadable(shown, &error.to_string()))?;
    patch::apply(&mut document, operations).map_err(|why| {
        PreparationFailure::new(format!("manifest patch {shown} cannot be applied: {why}"))
    })?;
    fs::write(target, yaml(&document)).map_err(|error| unwritable(shown, &error))
}

/// `value` as YAML; as JSON, a subset of YAML, if the text does not parse back to the same value.
pub(crate) fn yaml(value: &Value) -> String {
    serde_yaml::to_string(value)
        .ok()
        .filter(|text| serde_yaml::from_str::<Value>(text).is_ok_and(|read| read == *value))
        .unwrap_or_else(|| value.to_string())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, PreparationFailure> {
    let read = || -> io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect()
    };
    match read() {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unreadable(
            &folder.display().to_string(),
            &error.to_string(),
        )),
        entries => Ok(entries.unwrap_or_default()),
    }
}

fn write(folder: &Path, name: &str, content: &[u8]) -> Result<(), PreparationFailure> {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap_or(folder))
        .and_then(|()| fs::write(&path, content))
        .map_err(|error| unwritable(name, &error))
}

fn unreadable(name: &str, why: &str) -> PreparationFailure {
    let why = why.replace('\n', " ");
    PreparationFailure::new(format!("manifest {name} cannot be read: {why}"))
}

fn unwritable(name: &str, error: &io::Error) -> PreparationFailure {
    PreparationFailure::new(format!("manifest {name} cannot be written: {error}"))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const SCHEDULER: &str =
        "apiVersion: config.openshift.io/v1\nkind: Scheduler\nspec:\n  mastersSchedulable: false\n";

    async fn setup(stored: &[(&str, &str)]) -> (tempfile::TempDir, Result<(), PreparationFailure>) {
        let folder = tempfile::tempdir().unwrap();
        let store = FileStore::open(folder.path().join("data")).await.unwrap();
        let cluster = ClusterId(Uuid::from_u128(1));
        let mut generated = Vec::new();
        for (name, content) in stored {
            match name.strip_prefix("generated/openshift/") {
                Some(name) => {
                    generated.push(SystemManifest {
                        file_name: name.to_owned(),
                        content: (*content).to_owned(),
                    });
                }
                None => store.put(cluster, name, *content).await.unwrap(),
            }
        }
        write(
            folder.path(),
            "manifests/cluster-scheduler-02-config.yml",
            SCHEDULER.as_bytes(),
        )
        .unwrap();
        write(
            folder.path(),
            INFRASTRUCTURE,
            b"status:\n  infrastructureTopology: SingleReplica\n",
        )
        .unwrap();
        let outcome = write_all(&store, cluster, &generated, folder.path()).await;
        (folder, outcome)
    }

    fn read(folder: &tempfile::TempDir, name: &str) -> String {
        fs::read_to_string(folder.path().join(name)).unwrap()
    }

    #[tokio::test]
    async fn custom_manifests_override_generated_ones() {
        let (folder, outcome) = setup(&[
            ("generated/openshift/50-a.yaml", "kind: Generated"),
            ("generated/openshift/50-b.yaml", "kind: Generated"),
            ("manifests/openshift/50-a.yaml", "kind:   User # comment"),
        ])
        .await;
        outcome.unwrap();
        assert_eq!(
            read(&folder, "openshift/50-a.yaml"),
            "kind:   User # comment"
        );
        assert_eq!(read(&folder, "openshift/50-b.yaml"), "kind: Generated");
    }

    #[tokio::test]
    async fn files_of_several_documents_are_split() {
        let (folder, outcome) = setup(&[(
            "manifests/manifests/two.yml",
            "---\nkind: A\n---\n---\nkind: B\nx: 'yes'\n",
        )])
        .await;
        outcome.unwrap();
        assert!(!folder.path().join("manifests/two.yml").exists());
        let second: Value =
            serde_yaml::from_str(&read(&folder, "manifests/two-part-01.yml")).unwrap();
        assert_eq!(second, json!({ "kind": "B", "x": "yes" }));
    }

    #[tokio::test]
    async fn patches_apply_to_the_installers_manifests() {
        let patch = "- op: replace\n  path: /spec/mastersSchedulable\n  value: true\n";
        let (folder, outcome) = setup(&[(
            "generated/openshift/cluster-scheduler-02-config.yml.patch_ai_set_masters_schedulable",
            patch,
        )])
        .await;
        outcome.unwrap();
        let text = read(&folder, "manifests/cluster-scheduler-02-config.yml");
        let scheduler: Value = serde_yaml::from_str(&text).unwrap();
        assert_eq!(scheduler["spec"]["mastersSchedulable"], true);
        assert_eq!(
            fs::read_dir(folder.path().join("openshift"))
                .unwrap()
                .count(),
            0
        );

        set_highly_available_ingress(folder.path()).unwrap();
        assert!(read(&folder, INFRASTRUCTURE).contains("HighlyAvailable"));
    }

    #[tokio::test]
    async fn failed_patches_are_named() {
        let name = "manifests/manifests/nothing.yml.patch";
        let (_folder, outcome) = setup(&[(name, "- op: remove\n  path: /x\n")]).await;
        let failure = outcome.unwrap_err();
        assert!(failure.reason.contains("nothing.yml"), "{failure}");
        let name = "manifests/manifests/cluster-scheduler-02-config.yml.patch_1";
        let (_folder, outcome) = setup(&[(name, "- op: remove\n  path: /x\n")]).await;
        let failure = outcome.unwrap_err();
        assert!(failure.reason.contains("/x not found"), "{failure}");
    }

    #[test]
    fn yaml_round_trips() {
        let value = json!({ "a": "yes", "b": "0123", "c": "two\nlines\n\n", "d": "1e3", "e": " x ", "f": [null, {}, []], "g": "#x: y" });
        assert_eq!(serde_yaml::from_str::<Value>(&yaml(&value)).unwrap(), value);
    }
}
