//! Every object follows Kubernetes' JSON schemas, of the oldest supported version and of a new one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use system_tests::Scratch;

use super::{OVERLAYS, rendered};

/// Path of kubernetes-validate, which has the schemas.
const VARIABLE: &str = "KUBERNETES_VALIDATE";
/// The oldest one is that of deploy/kubernetes/README.md.
const VERSIONS: [&str; 2] = ["1.30", "1.37"];

/// The program; `None`, and a skipped test, where it is not installed.
fn validator() -> Option<PathBuf> {
    let program = std::env::var_os(VARIABLE).map(PathBuf::from);
    if program.is_none() {
        testkit::skipped("KUBERNETES_VALIDATE names no kubernetes-validate of PyPI");
    }
    program
}

/// Lines about `objects`: one for each that is valid, and errors.
fn verdicts(program: &Path, version: &str, objects: &[Value]) -> Result<(usize, Vec<String>)> {
    let scratch = Scratch::new()?;
    let file = scratch.path().join("objects.yaml");
    let texts: Vec<_> = objects.iter().map(Value::to_string).collect();
    fs::write(&file, texts.join("\n---\n"))?;
    let output = Command::new(program)
        .args(["--strict", "--kubernetes-version", version])
        .arg(&file)
        .output()
        .with_context(|| format!("running {}", program.display()))?;
    let text = String::from_utf8(output.stdout)?;
    // Kinds without a schema are warnings only, with exit code 0.
    let (valid, invalid): (Vec<_>, Vec<_>) = text
        .lines()
        .map(str::to_owned)
        .partition(|line| line.starts_with("INFO ") && line.contains(" passed "));
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(errors.is_empty(), "{errors}");
    Ok((valid.len(), invalid))
}

#[test]
fn objects_follow_kubernetes_schemas() -> Result<()> {
    let Some(program) = validator() else {
        return Ok(());
    };
    for overlay in OVERLAYS {
        let Some(objects) = rendered::objects(overlay)? else {
            return Ok(());
        };
        for version in VERSIONS {
            let (valid, problems) = verdicts(&program, version, &objects)?;
            ensure!(
                valid == objects.len() && problems.is_empty(),
                "{overlay}, Kubernetes {version}: {problems:#?}"
            );
        }
    }
    Ok(())
}

/// Otherwise the test above may pass for no reason.
#[test]
fn broken_objects_do_not_follow_the_schemas() -> Result<()> {
    let Some(program) = validator() else {
        return Ok(());
    };
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "a" },
        "spec": { "ports": [{ "port": 80 }] },
    });
    let changed = |pointer: &str, value: Value| {
        let mut object = service.clone();
        if let Some(place) = object.pointer_mut(pointer) {
            *place = value;
        }
        object
    };
    let broken = [
        changed("/spec/ports/0", json!({ "port": 80, "tagretPort": 8080 })),
        changed("/spec/ports/0/port", json!("http")),
        changed("/kind", json!("Servce")),
        changed("/apiVersion", json!("v2")),
    ];
    assert_eq!(verdicts(&program, VERSIONS[1], &[service])?.0, 1);
    for object in broken {
        let (valid, problems) = verdicts(&program, VERSIONS[1], std::slice::from_ref(&object))?;
        ensure!(valid == 0 && problems.len() == 1, "{object}: {problems:?}");
    }
    Ok(())
}
