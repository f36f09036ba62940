//! Programs without dependencies on the system that runs them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::elf;
use super::list::{AGENT, SERVICES};
use crate::apt;
use crate::cargo::{self, Profile, root};
use crate::command::{bounded, output, shown};

/// Download of the standard library of another target: some tens of megabytes. An unreachable server may hang.
const RUSTUP_TIMEOUT: Duration = Duration::from_secs(90);
/// Compiles the C of dependencies for musl.
const MUSL_COMPILER: &str = "musl-gcc";
/// Functions with equal code are kept once, 1 MiB of the services: Rust promises no function an address of its own.
const FOLDING: [&str; 2] = ["-Clink-arg=-fuse-ld=lld", "-Clink-arg=-Wl,--icf=all"];

/// A build target.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BuildTarget {
    triple: String,
    flags: Vec<String>,
}

impl BuildTarget {
    fn musl() -> Self {
        Self {
            triple: format!("{}-unknown-linux-musl", std::env::consts::ARCH),
            // A bit for a relocation instead of 24 bytes.
            flags: vec!["-Clink-arg=-Wl,-z,pack-relative-relocs".to_owned()],
        }
    }

    fn static_glibc() -> Self {
        Self {
            triple: format!("{}-unknown-linux-gnu", std::env::consts::ARCH),
            flags: vec!["-Ctarget-feature=+crt-static".to_owned()],
        }
    }
}

/// Builds the programs of `packages`; returns their folder.
pub(crate) fn build(packages: &[&str], profile: Profile) -> Result<PathBuf> {
    let BuildTarget { triple, mut flags } = target();
    flags.extend(without_places(
        root(),
        &cargo::target_directory()?,
        &cargo::home()?,
    ));
    let linkers = folding_linkers()?;
    if linkers.is_some() {
        flags.extend(FOLDING.map(str::to_owned));
    }
    let folder = cargo::build_for(&triple, &flags, linkers.as_deref(), packages, profile)?;
    for package in packages {
        let path = folder.join(program_of(package));
        let program = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let is_static = elf::is_static(&program).with_context(|| path.display().to_string())?;
        ensure!(
            is_static,
            "{} is not static: it asks for a loader, which an image without a system does not have",
            path.display()
        );
    }
    Ok(folder)
}

/// The program of a package.
fn program_of(package: &str) -> &str {
    let named = [SERVICES, AGENT];
    let named = named.iter().find(|it| it.package == package);
    named.map_or(package, |it| it.program)
}

/// The command that tests `package` as shipped: static, with the same C library.
pub(crate) fn test(package: &str) -> Command {
    let BuildTarget { triple, flags } = target();
    let mut command = cargo::cargo(&["test", "--package", package, "--target", &triple]);
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    command
}

/// musl; glibc where musl is not available.
fn target() -> BuildTarget {
    let musl = BuildTarget::musl();
    match ensure_musl(&musl.triple) {
        Ok(()) => musl,
        Err(error) => {
            let glibc = BuildTarget::static_glibc();
            eprintln!(
                "WARNING: {} is not available: {error:#}\n\
                 WARNING: the programs are linked statically with glibc instead ({}). They do the same, but are not \
                 those of a machine that has musl.",
                musl.triple, glibc.triple
            );
            glibc
        }
    }
}

fn ensure_musl(triple: &str) -> Result<()> {
    if !has_standard_library(triple)? {
        add_standard_library(triple)?;
        ensure!(
            has_standard_library(triple)?,
            "rustup added it, but rustc does not see it"
        );
    }
    if !apt::is_program(MUSL_COMPILER) {
        apt::install(
            &["musl-tools"],
            "images carry static programs, and some dependencies have C parts",
        )?;
    }
    Ok(())
}

/// The folder with LLVM's linker for gcc, which comes with most toolchains.
fn folding_linkers() -> Result<Option<PathBuf>> {
    let folder = library_folder(&[])?.with_file_name("bin").join("gcc-ld");
    Ok(folder.join("ld.lld").is_file().then_some(folder))
}

/// The folder of the standard library of a target; without arguments, of this machine.
fn library_folder(target: &[&str]) -> Result<PathBuf> {
    let mut command = Command::new("rustc");
    command
        .current_dir(root())
        .args(["--print", "target-libdir"])
        .args(target);
    let answer = output(&mut command)?;
    Ok(PathBuf::from(String::from_utf8_lossy(&answer).trim()))
}

fn has_standard_library(triple: &str) -> Result<bool> {
    let folder = library_folder(&["--target", triple])?;
    let is_library = |entry: fs::DirEntry| {
        let name = entry.file_name();
        name.to_string_lossy().starts_with("libstd-")
    };
    Ok(fs::read_dir(folder).is_ok_and(|entries| entries.flatten().any(is_library)))
}

fn add_standard_library(triple: &str) -> Result<()> {
    let mut command = Command::new("rustup");
    command
        .current_dir(root())
        .args(["target", "add", triple])
        .stdin(Stdio::null());
    println!(
        "Rust's standard library for {triple} is not here: {}",
        shown(&command)
    );
    bounded(&mut command, RUSTUP_TIMEOUT)
}

/// Flags that keep this machine's paths out of programs: panics and logs name source files.
fn without_places(workspace: &Path, target: &Path, home: &Path) -> Vec<String> {
    // The last match wins: the target directory may be in the workspace, and so may cargo's home.
    [
        (workspace, "/atoll"),
        (target, "/atoll/target"),
        (home, "/cargo"),
    ]
    .iter()
    .map(|(place, name)| format!("--remap-path-prefix={}={name}", place.display()))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_is_left() {
        let flags = without_places(
            Path::new("/home/a/atoll"),
            Path::new("/home/a/atoll/target"),
            Path::new("/home/a/.cargo"),
        );
        assert_eq!(
            flags,
            [
                "--remap-path-prefix=/home/a/atoll=/atoll",
                "--remap-path-prefix=/home/a/atoll/target=/atoll/target",
                "--remap-path-prefix=/home/a/.cargo=/cargo",
            ]
        );
    }

    #[test]
    fn the_library_of_the_own_target_is_found() {
        assert!(has_standard_library(&BuildTarget::static_glibc().triple).unwrap());
        assert!(!has_standard_library("sparc64-unknown-linux-gnu").unwrap());
        assert!(has_standard_library("no-such-target").is_err());
    }
}
