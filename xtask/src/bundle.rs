//! `cargo xtask bundle`: the folder that is carried to the disconnected host to run the pod there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Args;

use crate::cargo::Profile;
use crate::images;

/// Prepares the host (`atoll pod init`), or runs all services itself (`atoll up`).
pub(crate) const PROGRAM: &str = "atoll";

/// The bill of materials of each image, as CycloneDX.
const BILLS: &str = "sbom";

/// Arguments of `bundle`.
#[derive(Debug, Args)]
pub(crate) struct BundleArgs {
    /// The folder to write
    #[arg(value_name = "DIR", default_value = "target/bundle")]
    dir: PathBuf,
}

/// Writes the images, their bills of materials, and the program that prepares the host.
pub(crate) fn run(arguments: &BundleArgs) -> Result<ExitCode> {
    let dir = std::path::absolute(&arguments.dir)?;
    fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    let code = images::run(&images::ImagesArgs::saving(dir.join("images.tar")))?;
    let programs = images::programs::build(&[PROGRAM], Profile::Dist)?;
    replace(&programs.join(PROGRAM), &dir.join(PROGRAM))?;
    // `atoll up` gives it to hosts from its own folder.
    let agent = images::DISCOVERY_AGENT.1;
    let programs = images::shipped_programs()?;
    replace(&programs.join(agent), &dir.join(images::agent_name()))?;
    images::copy_bills(&dir.join(BILLS))?;
    println!(
        "{} is ready: images.tar, {BILLS} and {PROGRAM}",
        dir.display()
    );
    Ok(code)
}

/// Replaces a program atomically: a running one cannot be written to.
fn replace(source: &Path, target: &Path) -> Result<()> {
    let part = target.with_extension("part");
    fs::copy(source, &part)
        .and_then(|_| fs::rename(&part, target))
        .with_context(|| format!("copying {} to {}", source.display(), target.display()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::cargo::cargo;
    use crate::command::output;

    /// The catalog server has no SQLite reader, which would enlarge its image.
    const COMPILED_TWICE: &str = "catalog";

    /// The features of each crate in builds of `packages`, by name and version.
    fn features(packages: &[&str]) -> BTreeMap<String, String> {
        let mut command = cargo(&["tree", "--locked", "--edges", "normal"]);
        command.args(["--prefix", "none", "--no-dedupe", "--format", "{p}|{f}"]);
        for package in packages {
            command.args(["--package", package]);
        }
        let tree = String::from_utf8(output(&mut command).unwrap()).unwrap();
        let crates = tree.lines().filter_map(|line| line.split_once('|'));
        crates
            .map(|(package, features)| (package.to_owned(), features.to_owned()))
            .collect()
    }

    #[test]
    fn images_and_program_share_compiled_dependencies() {
        let images = features(&images::program_packages());
        let program = features(&[PROGRAM]);
        let shared: Vec<_> = images
            .iter()
            .filter_map(|(package, features)| Some((package, features, program.get(package)?)))
            .collect();
        assert!(shared.len() > 200, "only {} are shared", shared.len());
        for (package, features, others) in shared {
            let is_exception = package.starts_with(COMPILED_TWICE);
            assert!(
                is_exception || features == others,
                "{package} has the features {features} in images and {others} in {PROGRAM}: name them all in the \
                 root Cargo.toml, or it and all that depends on it are compiled twice"
            );
        }
    }
}
