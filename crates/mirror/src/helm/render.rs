//! Charts as manifests: those with templates by the program `helm`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use model::Error;
use tokio::process::Command;
use tokio::time::timeout;

use super::chart::Chart;

/// The program that renders templates; where it is, the search path of programs says.
const PROGRAM: &str = "helm";
/// Values that only an installation has. Source: the peer, in letters that the program takes.
const RELEASE: &str = "name";
const NAMESPACE: &str = "release-namespace";
/// The program contacts no server: it takes seconds even on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(5);
/// Most that a chart becomes. Units: bytes.
const OUTPUT_LIMIT: u64 = 100 << 20;
/// Bytes of the program's error output in a message. Units: bytes.
const COMPLAINT_LIMIT: u64 = 4 << 10;
/// In messages about a chart for other Kubernetes versions. Source: helm.
const KUBE_VERSION: &str = "kubeVersion";
/// Versions of one constraint that are tried.
const NAMED_VERSIONS: usize = 4;
/// Separator of documents.
const SEPARATOR: &str = "\n---\n";

/// A chart to be rendered.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChartInput<'a> {
    /// An archive or a folder.
    pub(super) path: &'a Path,
    /// Files of values besides the default ones; later files win.
    pub(super) values: &'a [PathBuf],
}

/// The manifests of a chart: also those that hooks apply, without those of tests.
///
/// Errors: Invalid – it is no chart, or cannot be rendered; NotFound – it is not there.
pub(super) async fn render(input: ChartInput<'_>) -> Result<String, Error> {
    let path = input.path;
    let owned = path.to_owned();
    let read = tokio::task::spawn_blocking(move || Chart::read(&owned)).await;
    let chart = read
        .map_err(|e| Error::internal("reading a chart", e))?
        .map_err(|e| {
            if e.kind() == ErrorKind::NotFound {
                return Error::not_found("chart", path.display());
            }
            Error::invalid(path.display().to_string(), e.to_string())
        })?;
    if chart.has_actions {
        return rendered_for_any(PROGRAM, input, &chart.kube_version).await;
    }
    let texts: Vec<_> = chart.manifests.into_iter().map(|(_, text)| text).collect();
    Ok(texts.join(SEPARATOR))
}

/// Renders for the program's own Kubernetes version, or else for one that the chart's constraint names.
async fn rendered_for_any(
    program: &str,
    input: ChartInput<'_>,
    constraint: &str,
) -> Result<String, Error> {
    let first = match rendered(program, input, None).await {
        Err(error) if error.chain().contains(KUBE_VERSION) => error,
        done => return done,
    };
    for version in kube_versions(constraint) {
        match rendered(program, input, Some(&version)).await {
            Err(error) if error.chain().contains(KUBE_VERSION) => {}
            done => return done,
        }
    }
    Err(first)
}

/// Versions that may be in a constraint: those that it names, and their neighbours.
fn kube_versions(constraint: &str) -> Vec<String> {
    let is_version = |c: char| c.is_ascii_digit() || c == '.';
    let named = constraint.split(|c| !is_version(c)).filter_map(|text| {
        let mut numbers = text.split('.').map(|it| it.parse::<u32>().ok());
        let major = numbers.next()??;
        let minor = numbers.next().flatten().unwrap_or(0);
        let patch = numbers.next().flatten().unwrap_or(0);
        // The number of a pre-release is none of a version.
        text.contains('.').then_some([major, minor, patch])
    });
    let mut versions = Vec::new();
    for [major, minor, patch] in named.take(NAMED_VERSIONS) {
        let below = minor.saturating_sub(1);
        for version in [
            [major, minor, patch],
            [major, minor, patch.saturating_add(1)],
            [major, minor.saturating_add(1), 0],
            [major, below, 0],
        ] {
            let text = version.map(|number| number.to_string()).join(".");
            if !versions.contains(&text) {
                versions.push(text);
            }
        }
    }
    versions
}

async fn rendered(
    program: &str,
    input: ChartInput<'_>,
    kube_version: Option<&str>,
) -> Result<String, Error> {
    let ChartInput { path, values } = input;
    let failed = |e| Error::internal(format!("rendering {}", path.display()), e);
    let wrong = |reason: String| Error::invalid(path.display().to_string(), reason);
    let path = path.canonicalize().map_err(failed)?;
    let (output, complaint) = (tempfile::tempfile(), tempfile::tempfile());
    let (mut output, mut complaint) = (output.map_err(failed)?, complaint.map_err(failed)?);
    let child = Command::new(program)
        .args(["template", RELEASE])
        .arg(&path)
        .args(["--namespace", NAMESPACE, "--include-crds", "--skip-tests"])
        .args(values.iter().map(|file| values_flag(file)))
        .args(kube_version.map(|version| format!("--kube-version={version}")))
        .stdin(Stdio::null())
        .stdout(output.try_clone().map_err(failed)?)
        .stderr(complaint.try_clone().map_err(failed)?)
        .kill_on_drop(true)
        .spawn();
    let mut child = child.map_err(|e| match e.kind() {
        ErrorKind::NotFound => wrong(format!(
            "its templates are rendered by the program {program}, which is not here: install it, or name the images of \
             the chart in additionalImages"
        )),
        _ => failed(e),
    })?;
    let ended = timeout(TIMEOUT, child.wait()).await;
    let ended = ended.map_err(|_| wrong(format!("{program} does not end")))?;
    if !ended.map_err(failed)?.success() {
        let complaint = text(&mut complaint, COMPLAINT_LIMIT).map_err(failed)?;
        return Err(wrong(format!("{program}: {}", complaint.trim())));
    }
    if output.metadata().map_err(failed)?.len() > OUTPUT_LIMIT {
        return Err(wrong(format!("it becomes more than {OUTPUT_LIMIT} bytes")));
    }
    text(&mut output, OUTPUT_LIMIT).map_err(failed)
}

/// The program takes a list in the format of CSV.
fn values_flag(file: &Path) -> OsString {
    let mut flag = OsString::from("--values=\"");
    flag.push(file.to_string_lossy().replace('"', "\"\""));
    flag.push("\"");
    flag
}

fn text(file: &mut File, limit: u64) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without_values(path: &Path) -> ChartInput<'_> {
        ChartInput { path, values: &[] }
    }

    #[tokio::test]
    async fn the_output_of_the_program_is_used() {
        let chart = tempfile::tempdir().unwrap();
        let path = chart.path().canonicalize().unwrap();
        let values = [PathBuf::from("/srv/a, \"b\".yaml")];
        for (values, flag) in [
            (&values[..0], ""),
            (&values[..], r#" --values="/srv/a, ""b"".yaml""#),
        ] {
            let input = ChartInput {
                path: &path,
                values,
            };
            let printed = rendered("echo", input, None).await.unwrap();
            let expected = format!(
                "template name {} --namespace release-namespace --include-crds --skip-tests{flag}\n",
                path.display()
            );
            assert_eq!(printed, expected);
        }
    }

    #[test]
    fn versions_of_constraints_are_tried() {
        assert_eq!(
            kube_versions(">=1.30.0-0 <1.33"),
            [
                "1.30.0", "1.30.1", "1.31.0", "1.29.0", "1.33.0", "1.33.1", "1.34.0", "1.32.0"
            ]
        );
        assert_eq!(kube_versions("~1.16.4")[..2], ["1.16.4", "1.16.5"]);
        assert!(kube_versions("").is_empty());
    }

    #[tokio::test]
    async fn charts_for_other_kubernetes_versions_are_rendered() {
        use std::fs::Permissions;
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("helm");
        let script = "#!/bin/sh\ncase \"$*\" in *--kube-version=1.34.1*) echo rendered;; \
            *) echo 'chart requires kubeVersion: >1.34.0' >&2; exit 1;; esac\n";
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        let program = program.to_str().unwrap();
        let done = rendered_for_any(program, without_values(folder.path()), ">1.34.0").await;
        assert_eq!(done.unwrap(), "rendered\n");
        let refused = rendered_for_any(program, without_values(folder.path()), ">9.0.0").await;
        assert!(refused.unwrap_err().to_string().contains("kubeVersion"));
    }

    #[tokio::test]
    async fn the_error_output_of_the_program_is_reported() {
        let chart = tempfile::tempdir().unwrap();
        for (program, expected) in [
            ("ls", "ls: ls: "),
            (
                "no-such-program",
                "no-such-program, which is not here: install it",
            ),
        ] {
            let error = rendered(program, without_values(chart.path()), None)
                .await
                .unwrap_err()
                .to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
