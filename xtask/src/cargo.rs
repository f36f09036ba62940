//! Cargo and rustc.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::command::{self, run};

/// The oldest compiler that this workspace supports, as in Cargo.toml and rust-toolchain.toml.
const MINIMUM: (u32, u32) = (1, 95);

/// The workspace's root.
pub(crate) fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own)
}

/// A cargo command in the workspace's root.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    // Cargo passes its own path to its children.
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root()).args(arguments);
    // Cargo sets variables of this program's package. Inherited, they would rerun build scripts that watch them, and
    // rebuild their dependents, at each switch between `cargo` and `cargo xtask`.
    for (name, _) in std::env::vars_os() {
        if is_of_package(&name.to_string_lossy()) {
            command.env_remove(name);
        }
    }
    command
}

/// Whether cargo sets this variable for the package that it runs.
fn is_of_package(variable: &str) -> bool {
    variable.starts_with("CARGO_PKG_") || variable.starts_with("CARGO_MANIFEST_")
}

/// Rejects a compiler that is too old, before it fails with an obscure error.
pub(crate) fn check_version() -> Result<()> {
    let output = Command::new("rustc")
        .current_dir(root())
        .arg("--version")
        .output()
        .context("running rustc: install Rust with rustup (https://rustup.rs)")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version =
        parse_version(&text).with_context(|| format!("malformed version of rustc: {text:?}"))?;
    ensure!(version >= MINIMUM, too_old(text.trim()));
    Ok(())
}

fn too_old(found: &str) -> String {
    let (major, minor) = MINIMUM;
    format!(
        "{found} is too old: this workspace needs {major}.{minor} or newer. The cargo of Debian is older than that; \
         install Rust with rustup (https://rustup.rs), which takes the version that rust-toolchain.toml names"
    )
}

/// `rustc 1.95.0 (…)` is (1, 95).
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split_whitespace().nth(1)?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Build profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Quick to build.
    Dev,
    /// Quick to run.
    Release,
    /// Built together with all tests, so that dependencies have their features and are compiled once.
    Tests,
    /// As shipped.
    Dist,
    /// The discovery agent as shipped.
    Agent,
}

impl Profile {
    /// The profile's name, and its folder below the target directory.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Dev | Self::Tests => ("dev", "debug"),
            Self::Release => ("release", "release"),
            Self::Dist => ("dist", "dist"),
            Self::Agent => ("agent", "agent"),
        }
    }
}

/// Builds `packages`, or everything for the tests; returns the folder of the programs.
pub(crate) fn build(packages: &[&str], profile: Profile) -> Result<PathBuf> {
    let (name, folder) = profile.names();
    if profile == Profile::Tests {
        // Features of development dependencies count only where tests are built, too.
        let mut command = build_command(&[], name);
        run(linted(command.args(["--workspace", "--all-targets"])))?;
    } else {
        run(&mut build_command(packages, name))?;
    }
    Ok(target_directory()?.join(folder))
}

/// Builds `packages` for the target `triple` with `flags`, and with the linkers in a folder; returns the folder of their
/// programs.
pub(crate) fn build_for(
    triple: &str,
    flags: &[String],
    linkers: Option<&Path>,
    packages: &[&str],
    profile: Profile,
) -> Result<PathBuf> {
    let (name, folder) = profile.names();
    let mut command = build_command(packages, name);
    if let Some(linkers) = linkers {
        // Of gcc. A flag with the folder would make each machine's program another one.
        command.env("COMPILER_PATH", linkers);
    }
    run(command
        .args(["--target", triple])
        // Overrides every other source of flags: the same source gives the same program.
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        // Compile time of C sources that embed one.
        .env("SOURCE_DATE_EPOCH", "0"))?;
    Ok(target_directory()?.join(triple).join(folder))
}

/// Compiles the workspace by clippy, which is a compiler, too: lints without a second look at each crate.
pub(crate) fn linted(command: &mut Command) -> &mut Command {
    command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver")
}

fn build_command(packages: &[&str], profile: &str) -> Command {
    let mut command = cargo(&["build", "--profile", profile]);
    for package in packages {
        command.args(["--package", package]);
    }
    command.env("SQLX_OFFLINE", "true");
    command
}

/// Cargo's home, with the sources of dependencies.
pub(crate) fn home() -> Result<PathBuf> {
    if let Some(home) = std::env::var_os("CARGO_HOME") {
        return Ok(PathBuf::from(home));
    }
    let home = std::env::home_dir().context("there is no home directory: set CARGO_HOME")?;
    Ok(home.join(".cargo"))
}

/// Cargo's target directory.
pub(crate) fn target_directory() -> Result<PathBuf> {
    let metadata = metadata()?;
    let path = metadata["target_directory"].as_str();
    path.map(PathBuf::from)
        .context("cargo metadata names no target directory")
}

/// Cargo's metadata of the workspace, without dependencies of dependencies.
pub(crate) fn metadata() -> Result<serde_json::Value> {
    let answer = command::output(&mut cargo(&[
        "metadata",
        "--no-deps",
        "--format-version",
        "1",
    ]))?;
    serde_json::from_slice(&answer).context("reading cargo metadata")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_compilers_are_rejected() {
        assert!(parse_version("rustc 1.63.0").unwrap() < MINIMUM);
        assert!(parse_version("rustc 1.95.0 (59807616e 2026-03-21)").unwrap() >= MINIMUM);
        assert!(parse_version("rustc 2.0.0-nightly").unwrap() > MINIMUM);
        assert_eq!(parse_version("clang"), None);
        assert!(too_old("rustc 1.63.0").contains("rustup"));
    }

    #[test]
    fn variables_of_the_own_package_are_not_inherited() {
        let command = cargo(&["build"]);
        let removed: Vec<_> = command
            .get_envs()
            .filter(|(_, value)| value.is_none())
            .collect();
        // Cargo runs tests with the same variables.
        assert!(removed.contains(&("CARGO_PKG_NAME".as_ref(), None)));
        assert!(!is_of_package("CARGO_HOME"));
    }

    #[test]
    fn the_manifest_requires_the_same_version() {
        let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
        let line = format!("rust-version = \"{}.{}\"", MINIMUM.0, MINIMUM.1);
        assert!(manifest.contains(&line));
    }
}
