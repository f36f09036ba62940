//! Mirrors of registries, from files as machines and clusters have them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use oci_client::Mirrors;
use serde::Deserialize;
use serde_json::Value;
use service::Error;

/// Kinds of documents, with the list of each, and the pulls that use it.
const KINDS: [(&str, &str, &str); 3] = [
    ("ImageDigestMirrorSet", "imageDigestMirrors", "digest-only"),
    ("ImageTagMirrorSet", "imageTagMirrors", "tag-only"),
    (
        "ImageContentSourcePolicy",
        "repositoryDigestMirrors",
        "digest-only",
    ),
];
/// Value of `mirrorSourcePolicy` that blocks the source.
const NEVER: &str = "NeverContactSource";

/// An entry of a set.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MirroredSource {
    source: String,
    #[serde(default)]
    mirrors: Vec<String>,
    #[serde(default)]
    mirror_source_policy: String,
}

/// The mirrors of all `paths`: registries.conf, or sets of mirrors in YAML.
///
/// Errors: a file that cannot be read, or is neither.
pub(super) fn read(paths: &[PathBuf]) -> Result<Mirrors, Error> {
    let mut all = String::new();
    for path in paths {
        let doing = || format!("reading mirrors of registries in {}", path.display());
        let text = std::fs::read_to_string(path).map_err(|e| Error::new(doing(), e))?;
        let text = if is_yaml(path, &text) {
            of_sets(&text).map_err(|reason| Error::new(doing(), reason))?
        } else {
            text
        };
        // Each alone, for its name in the error.
        Mirrors::parse(&text).map_err(|e| Error::new(doing(), e))?;
        all.push_str(&text);
        all.push('\n');
    }
    Mirrors::parse(&all).map_err(|e| Error::new("joining mirrors of registries", e))
}

fn is_yaml(path: &Path, text: &str) -> bool {
    let is_named = path
        .extension()
        .is_some_and(|extension| extension == "yaml" || extension == "yml");
    is_named || text.lines().any(|line| line.starts_with("kind:"))
}

/// Sets of mirrors in the format of registries.conf.
fn of_sets(text: &str) -> Result<String, String> {
    let documents: Vec<Value> = serde_yaml::from_multiple(text).map_err(|e| e.to_string())?;
    let mut entries = String::new();
    for document in documents.iter().filter(|document| !document.is_null()) {
        let kind = document["kind"].as_str().unwrap_or_default();
        let known = KINDS.iter().find(|(name, ..)| *name == kind);
        let (_, list, pulls) = known.ok_or_else(|| {
            let names = KINDS.map(|(name, ..)| name).join(", ");
            format!("the kind {kind:?} is none of {names}")
        })?;
        let list = document["spec"][list].clone();
        let sources: Vec<MirroredSource> =
            serde_json::from_value(list).map_err(|e| format!("{kind}: {e}"))?;
        for source in &sources {
            write_entry(&mut entries, source, pulls);
        }
    }
    Ok(entries)
}

fn write_entry(to: &mut String, source: &MirroredSource, pulls: &str) {
    // Strings of TOML are escaped as those of JSON.
    let quoted = |text: &str| Value::from(text).to_string();
    let name = quoted(&source.source);
    let blocked = source.mirror_source_policy == NEVER;
    writeln!(to, "[[registry]]\nprefix = {name}").ok();
    // A star is in prefixes alone.
    if !source.source.starts_with('*') {
        writeln!(to, "location = {name}").ok();
    }
    writeln!(to, "blocked = {blocked}").ok();
    for mirror in &source.mirrors {
        let mirror = quoted(mirror);
        writeln!(
            to,
            "[[registry.mirror]]\nlocation = {mirror}\npull-from-mirror = \"{pulls}\""
        )
        .ok();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const SETS: &str = "
apiVersion: config.openshift.io/v1
kind: ImageDigestMirrorSet
spec:
  imageDigestMirrors:
  - source: quay.io/openshift-release-dev/ocp-release
    mirrors: [registry.lab:5000/openshift/release-images]
    mirrorSourcePolicy: NeverContactSource
---
kind: ImageTagMirrorSet
spec:
  imageTagMirrors:
  - source: quay.io/tools
    mirrors: [registry.lab:5000/tools]
";

    fn candidates(mirrors: &Mirrors, image: &str) -> Vec<String> {
        let found = mirrors.candidates(&image.parse().unwrap()).unwrap();
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn sets_and_files_are_joined() {
        let dir = tempfile::tempdir().unwrap();
        let (sets, conf) = (dir.path().join("idms.yaml"), dir.path().join("r.conf"));
        fs::write(&sets, SETS).unwrap();
        let text = "[[registry]]\nlocation = \"docker.io\"\n[[registry.mirror]]\nlocation = \"registry.lab:5000/hub\"\n";
        fs::write(&conf, text).unwrap();
        let mirrors = read(&[sets.clone(), conf.clone()]).unwrap();
        let digest = format!("sha256:{}", "a".repeat(64));
        assert_eq!(
            candidates(
                &mirrors,
                &format!("quay.io/openshift-release-dev/ocp-release@{digest}")
            ),
            [format!(
                "registry.lab:5000/openshift/release-images@{digest}"
            )]
        );
        assert_eq!(
            candidates(&mirrors, "quay.io/tools/a:1"),
            ["registry.lab:5000/tools/a:1", "quay.io/tools/a:1"]
        );
        assert_eq!(candidates(&mirrors, "docker.io/a/b:1").len(), 2);
        for (text, expected) in [
            ("kind: ConfigMap\n", "ConfigMap"),
            ("kind: ImageTagMirrorSet\nspec: {}\n", "ImageTagMirrorSet"),
            (": [", "idms.yaml"),
        ] {
            fs::write(&sets, text).unwrap();
            let error = read(&[conf.clone(), sets.clone()]).unwrap_err();
            let error = error.to_string();
            assert!(error.contains(expected), "{error}");
            assert!(error.contains("idms.yaml"), "{error}");
        }
        assert_eq!(read(&[]).unwrap(), Mirrors::default());
        read(&[dir.path().join("absent")]).unwrap_err();
    }
}
