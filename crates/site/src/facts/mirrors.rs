//! Mirrors of registries, from files as machines and clusters have them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use oci_client::Mirrors;
use serde::Deserialize;
use serde_json::Value;
use service::{Error, ResultExt as _};

use crate::event::{SiteEvent, SiteObserver};

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

/// [`read`] for files that a user names to be checked.
///
/// Errors: as [`read`]; a file without a mirror.
pub fn read_named(paths: &[PathBuf], observe: SiteObserver<'_>) -> Result<Mirrors, Error> {
    for path in paths {
        let mirrors = read(std::slice::from_ref(path), observe)?;
        if mirrors.mirror_hosts().is_empty() {
            let doing = format!("reading mirrors of registries in {}", path.display());
            let reason = "it names no mirror: give a file that does, as registries.conf or the ImageDigestMirrorSet of a mirroring run";
            return Err(Error::new(doing, reason));
        }
    }
    read(paths, observe)
}

/// The mirrors of all `paths`: registries.conf, or sets of mirrors in YAML or JSON, also as the items of a list.
///
/// Errors: a file that cannot be read, or is neither.
pub(super) fn read(paths: &[PathBuf], observe: SiteObserver<'_>) -> Result<Mirrors, Error> {
    let mut all = String::new();
    for path in paths {
        let doing = || format!("reading mirrors of registries in {}", path.display());
        let text = std::fs::read_to_string(path).doing(doing)?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let text = if is_yaml(path, text) {
            of_sets(path, text, observe).doing(doing)?
        } else {
            text.to_owned()
        };
        // Each alone, for its name in the error.
        Mirrors::parse(&text).doing(doing)?;
        all.push_str(&text);
        all.push('\n');
    }
    Mirrors::parse(&all).doing("joining mirrors of registries")
}

fn is_yaml(path: &Path, text: &str) -> bool {
    let extension = path.extension().unwrap_or_default();
    let is_named = ["yaml", "yml", "json"].iter().any(|it| *it == extension);
    is_named || text.trim_start().starts_with('{') || text.lines().any(|it| it.starts_with("kind:"))
}

/// Sets of mirrors in the format of registries.conf.
fn of_sets(path: &Path, text: &str, observe: SiteObserver<'_>) -> Result<String, String> {
    let documents: Vec<Value> = serde_yaml::from_multiple(text)
        .map_err(|e| e.to_string().lines().next().unwrap_or_default().to_owned())?;
    let mut entries = String::new();
    let mut others = Vec::new();
    let mut is_set = false;
    for document in documents.iter().flat_map(items) {
        let kind = document["kind"].as_str().unwrap_or_default();
        let Some((_, list, pulls)) = KINDS.iter().find(|(name, ..)| *name == kind) else {
            others.push(kind);
            continue;
        };
        is_set = true;
        let member = format!("spec.{list}");
        let list = document["spec"][list].clone();
        let sources: Option<Vec<MirroredSource>> =
            serde_json::from_value(list).map_err(|e| format!("{member} of {kind}: {e}"))?;
        for source in sources.iter().flatten() {
            write_entry(&mut entries, source, pulls);
        }
    }
    if !is_set {
        let names = KINDS.map(|(name, ..)| name).join(", ");
        let found = match others.iter().find(|kind| !kind.is_empty()) {
            Some(kind) => format!(", only {kind:?}"),
            None => String::new(),
        };
        return Err(format!(
            "it has none of {names}{found}: give one of them, or registries.conf"
        ));
    }
    for kind in others.into_iter().filter(|kind| !kind.is_empty()) {
        observe(SiteEvent::KindSkipped { path, kind });
    }
    Ok(entries)
}

/// The objects of a document: those of a list, as `oc get` writes it, or itself.
fn items(document: &Value) -> Vec<&Value> {
    let kind = document["kind"].as_str().unwrap_or_default();
    match document["items"].as_array() {
        Some(items) if kind.ends_with("List") => items.iter().collect(),
        _ if document.is_null() => Vec::new(),
        _ => vec![document],
    }
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
        let mirrors = read(&[sets.clone(), conf.clone()], &|_| {}).unwrap();
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
            ("kind: ConfigMap\n", "only \"ConfigMap\""),
            ("", "it has none of"),
            ("kind: List\nitems: []\n", "it has none of"),
            (
                "kind: ImageTagMirrorSet\nspec: {imageTagMirrors: []}\n",
                "it names no mirror",
            ),
            ("kind: ImageTagMirrorSet\nspec: {}\n", "it names no mirror"),
            (
                "kind: ImageTagMirrorSet\nspec: {imageTagMirrors: {source: a}}\n",
                "spec.imageTagMirrors of ImageTagMirrorSet: invalid type: map",
            ),
            ("kind: ''\n", "ImageContentSourcePolicy: give one"),
            (": [", "idms.yaml"),
        ] {
            fs::write(&sets, text).unwrap();
            let error = read_named(&[conf.clone(), sets.clone()], &|_| {}).unwrap_err();
            let error = error.to_string();
            assert!(error.contains(expected), "{error}");
            assert!(error.contains("idms.yaml"), "{error}");
        }
        fs::write(&conf, "").unwrap();
        let error = read_named(std::slice::from_ref(&conf), &|_| {}).unwrap_err();
        assert!(error.to_string().contains("names no mirror"), "{error}");
        assert_eq!(read(&[conf], &|_| {}).unwrap(), Mirrors::default());
        assert_eq!(read(&[], &|_| {}).unwrap(), Mirrors::default());
        read(&[dir.path().join("absent")], &|_| {}).unwrap_err();
    }

    #[test]
    fn lists_other_kinds_and_json_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let item = |kind: &str, list: &str, source: &str| {
            serde_json::json!({ "kind": kind, "spec": { list: [
                { "source": source, "mirrors": [format!("registry.lab:5000/{}", kind.to_lowercase())] }] } })
        };
        let digests = item("ImageDigestMirrorSet", "imageDigestMirrors", "quay.io/a");
        let policy = item(
            "ImageContentSourcePolicy",
            "repositoryDigestMirrors",
            "quay.io/b",
        );
        let catalog = serde_json::json!({ "kind": "CatalogSource", "spec": {} });
        let list = serde_json::json!({ "kind": "List", "apiVersion": "v1", "items": [digests, policy, catalog] });
        for (name, text) in [
            ("list.json", list.to_string()),
            ("list", format!("\u{feff}{list:#}")),
            (
                "all.yaml",
                format!("---\n{catalog}\n---\n{digests}\n---\n{policy}\n---\n"),
            ),
            (
                "typed.yml",
                list.to_string()
                    .replace("\"List\"", "\"ImageDigestMirrorSetList\""),
            ),
        ] {
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            let mirrors = read(&[path], &|_| {}).unwrap();
            let sources: Vec<_> = mirrors.sources().map(|it| it.location).collect();
            assert_eq!(sources, ["quay.io/a", "quay.io/b"], "{name}");
        }
    }
}
