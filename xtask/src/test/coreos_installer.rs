//! The real coreos-installer, as a second reader of our images. Built once.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::apt;
use crate::cargo::{cargo, root};
use crate::command::run;

/// The version that the demo was tested with.
const VERSION: &str = "0.27.0";
/// C libraries by their names in pkg-config, and the Debian packages that have them.
const LIBRARIES: [&str; 2] = ["openssl", "libzstd"];
const LIBRARY_PACKAGES: [&str; 3] = ["pkg-config", "libssl-dev", "libzstd-dev"];

/// The program, and the images that its own tests read.
pub(crate) struct CoreosInstaller {
    pub(crate) program: PathBuf,
    /// A folder of images with the layouts of ten builds since 2020, compressed.
    pub(crate) images: PathBuf,
}

/// Builds it into target/tools unless it exists.
pub(crate) fn ensure() -> Result<CoreosInstaller> {
    let tools = root().join("target/tools");
    let program = tools.join("bin/coreos-installer");
    let images = tools.join("live-images");
    if !program.is_file() || !images.is_dir() {
        println!(
            "Building coreos-installer {VERSION} into {} (once).",
            tools.display()
        );
        if !has_libraries() {
            apt::install(&LIBRARY_PACKAGES, "coreos-installer links these libraries")?;
        }
        let tools = tools.to_string_lossy();
        run(&mut cargo(&[
            "install",
            "coreos-installer",
            "--locked",
            "--version",
            VERSION,
            "--force",
            "--root",
            &tools,
        ]))?;
        let fixtures = registry_sources()?.join("fixtures/iso");
        run(Command::new("cp").arg("-r").arg(fixtures).arg(&images))?;
    }
    Ok(CoreosInstaller { program, images })
}

/// The folder of its sources, which cargo has unpacked.
fn registry_sources() -> Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let registries = home.context("cargo has no home")?.join("registry/src");
    let entries = fs::read_dir(&registries)?.filter_map(Result::ok);
    let mut folders = entries.map(|entry| entry.path().join(format!("coreos-installer-{VERSION}")));
    let found = folders.find(|folder| folder.is_dir());
    found.with_context(|| format!("no coreos-installer in {}", registries.display()))
}

fn has_libraries() -> bool {
    let mut command = Command::new("pkg-config");
    let status = command.arg("--exists").args(LIBRARIES).status();
    status.is_ok_and(|status| status.success())
}
