//! Objects of an overlay, as kustomize renders them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// Path of kustomize, or of a kubectl that contains it.
const VARIABLE: &str = "KUSTOMIZE";

/// The program and its first argument; `None`, and a skipped test, where there is none.
fn kustomize() -> Option<(PathBuf, &'static str)> {
    let Some(program) = std::env::var_os(VARIABLE).map(PathBuf::from) else {
        testkit::skipped("KUSTOMIZE names no kustomize or kubectl");
        return None;
    };
    let is_kubectl = program.file_name().is_some_and(|name| name == "kubectl");
    Some((program, if is_kubectl { "kustomize" } else { "build" }))
}

/// The objects of an overlay; `None`, and a skipped test, without kustomize.
pub(super) fn objects(overlay: &str) -> Result<Option<Vec<Value>>> {
    let Some((program, verb)) = kustomize() else {
        return Ok(None);
    };
    let overlays = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/kubernetes/overlays");
    let output = Command::new(&program)
        .arg(verb)
        .arg(overlays.join(overlay))
        .output()
        .with_context(|| format!("running {}", program.display()))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "rendering {overlay}: {errors}");
    let text = String::from_utf8(output.stdout).context("rendered objects")?;
    let documents: Result<Vec<Value>, _> =
        text.split("\n---\n").map(serde_yaml::from_str).collect();
    let documents = documents.with_context(|| format!("parsing {overlay}"))?;
    ensure!(!documents.is_empty(), "{overlay} has no objects");
    Ok(Some(documents))
}

/// Kind and name, for messages.
pub(super) fn title(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    format!(
        "{}/{}",
        text(&object["kind"]),
        text(&object["metadata"]["name"])
    )
}

/// Whether the object is of this kind.
pub(super) fn is_kind(object: &Value, kind: &str) -> bool {
    object["kind"] == kind
}
