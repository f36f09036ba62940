//! Charts as manifests: those with templates by the program `helm`.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _};
use std::path::Path;
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
/// Separator of documents.
const SEPARATOR: &str = "\n---\n";

/// The manifests of a chart with its default values: also those that hooks apply, without those of tests.
///
/// Errors: Invalid – it is no chart, or cannot be rendered; NotFound – it is not there.
pub(super) async fn render(path: &Path) -> Result<String, Error> {
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
        return rendered(PROGRAM, path).await;
    }
    let texts: Vec<_> = chart.manifests.into_iter().map(|(_, text)| text).collect();
    Ok(texts.join(SEPARATOR))
}

async fn rendered(program: &str, path: &Path) -> Result<String, Error> {
    let failed = |e| Error::internal(format!("rendering {}", path.display()), e);
    let wrong = |reason: String| Error::invalid(path.display().to_string(), reason);
    let path = path.canonicalize().map_err(failed)?;
    let (output, complaint) = (tempfile::tempfile(), tempfile::tempfile());
    let (mut output, mut complaint) = (output.map_err(failed)?, complaint.map_err(failed)?);
    let child = Command::new(program)
        .args(["template", RELEASE])
        .arg(&path)
        .args(["--namespace", NAMESPACE, "--include-crds", "--skip-tests"])
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

fn text(file: &mut File, limit: u64) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_output_of_the_program_is_used() {
        let chart = tempfile::tempdir().unwrap();
        let path = chart.path().canonicalize().unwrap();
        let printed = rendered("echo", &path).await.unwrap();
        let expected = format!(
            "template name {} --namespace release-namespace --include-crds --skip-tests\n",
            path.display()
        );
        assert_eq!(printed, expected);
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
            let error = rendered(program, chart.path())
                .await
                .unwrap_err()
                .to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
