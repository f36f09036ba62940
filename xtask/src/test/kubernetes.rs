//! Programs for the tests of deploy/kubernetes: kustomize, kube-apiserver with etcd.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::apt::find_program;
use crate::cargo::root;
use crate::command::run;

const KUSTOMIZE_MODULE: &str = "sigs.k8s.io/kustomize/kustomize/v5";
const KUSTOMIZE_VERSION: &str = "v5.8.1";
/// The module that pins kube-apiserver, etcd and their dependencies.
const MODULE: &str = "tests/kubernetes";
/// Packages of it, and the names of their programs.
const PROGRAMS: [(&str, &str); 2] = [
    ("go.etcd.io/etcd/server/v3", "etcd"),
    ("k8s.io/kubernetes/cmd/kube-apiserver", "kube-apiserver"),
];

/// kubectl, which contains kustomize, or kustomize itself, compiled.
pub(super) fn kustomize() -> Result<PathBuf> {
    if let Some(program) = find_program("kubectl").or_else(|| find_program("kustomize")) {
        return Ok(program);
    }
    let folder = root().join(format!("target/tools/kustomize-{KUSTOMIZE_VERSION}"));
    let program = folder.join("kustomize");
    if !program.is_file() {
        println!(
            "Neither kubectl nor kustomize is here: kustomize is compiled into {}.",
            folder.display()
        );
        run(go()?
            .args([
                "install",
                &format!("{KUSTOMIZE_MODULE}@{KUSTOMIZE_VERSION}"),
            ])
            .env("GOBIN", &folder))?;
    }
    Ok(program)
}

/// The folder of kube-apiserver and etcd, compiled once for each list of versions.
pub(super) fn programs() -> Result<PathBuf> {
    let module = root().join(MODULE);
    let versions = module.join("go.sum");
    let folder = root().join("target/tools/kubernetes");
    // Written last: an interrupted compilation is repeated.
    let compiled = folder.join("go.sum");
    let wanted = fs::read(&versions).with_context(|| format!("reading {}", versions.display()))?;
    if fs::read(&compiled).is_ok_and(|present| present == wanted) {
        return Ok(folder);
    }
    println!(
        "Compiling kube-apiserver and etcd into {}: 8 minutes of CPU time, 3 GB of Go's build cache.",
        folder.display()
    );
    for (package, name) in PROGRAMS {
        run(go()?
            .args(["build", "-trimpath", "-ldflags=-s -w", "-o"])
            .arg(folder.join(name))
            .arg(package)
            .env("CGO_ENABLED", "0")
            .current_dir(&module))?;
    }
    fs::write(&compiled, wanted).with_context(|| format!("writing {}", compiled.display()))?;
    Ok(folder)
}

fn go() -> Result<Command> {
    ensure!(find_program("go").is_some(), "go is not in PATH");
    Ok(Command::new("go"))
}
