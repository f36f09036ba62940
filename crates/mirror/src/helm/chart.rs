//! The files of a chart that become manifests.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::Value;

/// As much of one chart as is read. Source: helm. Units: bytes.
const BYTES_LIMIT: u64 = 100 << 20;
/// Most files of one chart.
const FILES_LIMIT: usize = 20_000;
/// Start of an action in a template. Source: Go, text/template.
const ACTION: &str = "{{";
/// Extensions of manifests.
const MANIFESTS: [&str; 3] = ["yaml", "yml", "json"];

/// A chart.
#[derive(Debug, Default)]
pub(super) struct Chart {
    /// Manifests, by their paths; templates where the chart is not plain.
    pub(super) manifests: Vec<(PathBuf, String)>,
    /// Constraint of Kubernetes versions; empty for none.
    pub(super) kube_version: String,
    /// Whether something has to be done before they are manifests.
    pub(super) has_actions: bool,
    bytes: u64,
    files: usize,
    has_name: bool,
}

impl Chart {
    /// Reads an archive or a folder.
    ///
    /// Blocking. Errors: it cannot be read, is no chart, or is too large.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let mut chart = Self::default();
        if path.is_dir() {
            chart.folder(path, Path::new(""))?;
        } else {
            chart.archive(File::open(path)?)?;
        }
        if !chart.has_name {
            return Err(io::Error::other("it is no chart: it has no Chart.yaml"));
        }
        chart.manifests.sort();
        Ok(chart)
    }

    fn folder(&mut self, folder: &Path, inside: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let (path, inside) = (entry.path(), inside.join(entry.file_name()));
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.folder(&path, &inside)?;
            } else if kind.is_file() {
                self.file(inside, &mut File::open(path)?)?;
            }
        }
        Ok(())
    }

    fn archive(&mut self, file: File) -> io::Result<()> {
        let unpacked = GzDecoder::new(file).take(BYTES_LIMIT + 1);
        let mut archive = tar::Archive::new(unpacked);
        for entry in archive.entries()? {
            let mut entry = entry?;
            if !entry.header().entry_type().is_file() {
                continue;
            }
            // All members are in a folder with the chart's name.
            let path = entry.path()?.components().skip(1).collect();
            self.file(path, &mut entry)?;
        }
        Ok(())
    }

    fn file(&mut self, path: PathBuf, content: &mut impl Read) -> io::Result<()> {
        self.files += 1;
        if self.files > FILES_LIMIT {
            let reason = format!("it has more than {FILES_LIMIT} files");
            return Err(io::Error::other(reason));
        }
        let mut parts = path.components();
        let top = match parts.next() {
            Some(Component::Normal(top)) => top.to_string_lossy().into_owned(),
            _ => return Ok(()),
        };
        match (top.as_str(), parts.as_path().as_os_str().is_empty()) {
            ("Chart.yaml", true) => {
                self.has_name = true;
                self.kube_version = kube_version(&self.text(content)?);
            }
            // Charts within the chart have conditions and values of their own.
            ("charts", false) => self.has_actions = true,
            ("crds" | "templates", false) if is_manifest(&path) => {
                let text = self.text(content)?;
                self.has_actions |= top == "templates" && text.contains(ACTION);
                self.manifests.push((path, text));
            }
            _ => {}
        }
        Ok(())
    }

    fn text(&mut self, content: &mut impl Read) -> io::Result<String> {
        let mut text = String::new();
        let left = BYTES_LIMIT - self.bytes;
        let read = content.take(left + 1).read_to_string(&mut text)? as u64;
        if read > left {
            let reason = format!("it has more than {BYTES_LIMIT} bytes");
            return Err(io::Error::other(reason));
        }
        self.bytes += read;
        Ok(text)
    }
}

/// The constraint in a `Chart.yaml`; empty where it has none, or cannot be read, which helm reports.
fn kube_version(text: &str) -> String {
    let json = catalog::yaml_to_json(text).unwrap_or_default();
    let chart: Value = serde_json::from_str(&json).unwrap_or_default();
    let constraint = chart.get("kubeVersion").and_then(Value::as_str);
    constraint.unwrap_or_default().to_owned()
}

fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().and_then(|it| it.to_str());
    let name = path.file_name().and_then(|it| it.to_str());
    // Files with other extensions are included by these.
    extension.is_some_and(|it| MANIFESTS.contains(&it))
        && name.is_some_and(|it| !it.starts_with('_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        folder
    }

    fn packed(files: &[(&str, &str)]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let packed = flate2::write::GzEncoder::new(file.as_file(), flate2::Compression::fast());
        let mut tar = tar::Builder::new(packed);
        for (path, content) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            let path = format!("web/{path}");
            tar.append_data(&mut header, path, content.as_bytes())
                .unwrap();
        }
        tar.into_inner().unwrap().finish().unwrap();
        file
    }

    #[test]
    fn plain_manifests_need_no_rendering() {
        let files = [
            ("Chart.yaml", "name: web"),
            ("templates/pod.yaml", "kind: Pod"),
            ("templates/_names.yaml", "{{ define }}"),
            ("templates/NOTES.txt", "{{ .Release.Name }}"),
            ("crds/crd.yml", "kind: CustomResourceDefinition"),
            ("values.yaml", "image: unused"),
        ];
        let (folder, archive) = (written(&files), packed(&files));
        for path in [folder.path(), archive.path()] {
            let chart = Chart::read(path).unwrap();
            assert!(!chart.has_actions);
            let names: Vec<_> = chart
                .manifests
                .iter()
                .map(|(path, _)| path.to_str().unwrap())
                .collect();
            assert_eq!(names, ["crds/crd.yml", "templates/pod.yaml"]);
        }
    }

    #[test]
    fn templates_and_charts_within_need_rendering() {
        for other in [
            ("templates/pod.yaml", "image: {{ .Values.image }}"),
            ("charts/db/Chart.yaml", "name: db"),
            ("charts/db-1.0.0.tgz", ""),
        ] {
            let folder = written(&[("Chart.yaml", "name: web"), other]);
            assert!(Chart::read(folder.path()).unwrap().has_actions, "{other:?}");
        }
    }

    #[test]
    fn other_folders_are_no_charts() {
        let folder = written(&[("templates/pod.yaml", "kind: Pod")]);
        let error = Chart::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("no Chart.yaml"), "{error}");
    }
}
