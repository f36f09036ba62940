//! `cargo xtask bundle`: the file that is carried to the disconnected host to run the pod there.
//!
//! Builds the images and the program, which then writes the file: `atoll bundle`.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use clap::Args;

use crate::cargo::{Profile, root};
use crate::command::run as run_command;
use crate::images;
use crate::scratch::ScratchFolder;

/// Prepares the host (`atoll install`), or runs all services itself (`atoll up`).
pub(crate) const PROGRAM: &str = "atoll";

/// Kubernetes manifests, whose images have to be inside.
const KUBERNETES: &str = "deploy/kubernetes";

/// Arguments of `bundle`.
#[derive(Debug, Args)]
pub(crate) struct BundleArgs {
    /// The file to write
    #[arg(value_name = "FILE", default_value = "target/bundle/atoll-bundle.tar")]
    file: PathBuf,
    /// Arguments of `atoll bundle`: `-- --archives DIR --os-image FILE --image REF --sign KEY`
    #[arg(last = true)]
    more: Vec<String>,
}

/// Builds images and programs, and writes them into one file.
pub(crate) fn run(arguments: &BundleArgs) -> Result<ExitCode> {
    let file = std::path::absolute(&arguments.file)?;
    let code = images::run(&images::ImagesArgs::layouts())?;
    let programs = images::programs::build(&[PROGRAM], Profile::Dist)?;
    let scratch = ScratchFolder::new()?;
    let mut command = Command::new(programs.join(PROGRAM));
    command.arg("bundle").arg(&file);
    for layout in images::layout_folders()? {
        command.arg("--images").arg(layout);
    }
    for layout in images::pulled_layout_folders()? {
        command
            .arg("--image")
            .arg(format!("oci://{}", layout.display()));
    }
    // `atoll up` gives it to hosts from its own folder.
    let agent = scratch.path().join(images::agent_name());
    let shipped = images::shipped_agent()?;
    std::fs::copy(&shipped, &agent).with_context(|| format!("copying {}", shipped.display()))?;
    let bills = scratch.path().join("sbom");
    images::copy_bills(&bills)?;
    command.arg("--agent").arg(agent).arg("--sbom").arg(bills);
    let kubernetes = root().join(KUBERNETES);
    if kubernetes.is_dir() {
        command.arg("--manifests").arg(kubernetes);
    }
    command.args(&arguments.more);
    run_command(&mut command)?;
    Ok(code)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::cargo::cargo;
    use crate::command::output;

    /// Compiled twice: the catalog server has no SQLite reader.
    const COMPILED_TWICE: &str = "catalog";

    /// The features of each crate in builds of `packages`, by name and version: a crate that macros use, too, is compiled for
    /// each of both.
    fn features(packages: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
        let mut command = cargo(&["tree", "--locked", "--edges", "normal"]);
        command.args(["--prefix", "none", "--no-dedupe", "--format", "{p}|{f}"]);
        for package in packages {
            command.args(["--package", package]);
        }
        let tree = String::from_utf8(output(&mut command).unwrap()).unwrap();
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (package, features) in tree.lines().filter_map(|line| line.split_once('|')) {
            let all = found.entry(package.to_owned()).or_default();
            all.insert(features.to_owned());
        }
        found
    }

    #[test]
    fn images_and_program_share_compiled_dependencies() {
        let images = features(&[images::SERVICES.package]);
        let program = features(&[PROGRAM]);
        let shared: Vec<_> = images
            .iter()
            .filter_map(|(package, features)| Some((package, features, program.get(package)?)))
            .collect();
        assert!(shared.len() > 200, "only {} are shared", shared.len());
        for (package, features, others) in shared {
            let name = package.split(' ').next().unwrap();
            assert!(
                name == COMPILED_TWICE || features == others,
                "{package} has the features {features:?} in images and {others:?} in {PROGRAM}: name them all in the \
                 root Cargo.toml, or it and all that depends on it are compiled twice"
            );
        }
    }
}
