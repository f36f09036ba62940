//! Debian packages, installed when a tool is missing.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

use crate::command::{run, shown};

/// Permission to install packages.
#[derive(Debug)]
pub(crate) struct Apt {
    /// Prefix of commands that need root.
    prefix: Vec<&'static str>,
}

impl Apt {
    /// Prepares the installation of `packages`. Errors: a missing permission, with its remedy; `elsewhere` on systems
    /// other than Debian.
    pub(crate) fn prepare(packages: &[&str], elsewhere: &str) -> Result<Self> {
        if !Path::new("/etc/debian_version").exists() {
            bail!("{elsewhere}");
        }
        let names = packages.join(" ");
        let Some(prefix) = privileged_prefix() else {
            bail!(
                "installing packages needs root, and sudo asks for a password. Run this, then try again:\n  \
                 sudo apt-get update && sudo apt-get install --yes --no-install-recommends {names}"
            );
        };
        let apt = Self { prefix };
        // Fresh machines have no lists. An unreachable mirror must not stop an installation from the cache.
        apt.command(&["apt-get", "update", "--quiet=2"])
            .status()
            .ok();
        Ok(apt)
    }

    /// Installs one package.
    pub(crate) fn install(&self, package: &str) -> Result<()> {
        let arguments = [
            "apt-get",
            "install",
            "--yes",
            "--no-install-recommends",
            "--quiet=2",
            package,
        ];
        run(self
            .command(&arguments)
            .env("DEBIAN_FRONTEND", "noninteractive"))
    }

    /// Writes a system file.
    pub(crate) fn write(&self, path: &str, text: &str) -> Result<()> {
        let folder = Path::new(path).parent().context("a file has a folder")?;
        run(&mut self.command(&["mkdir", "-p", &folder.to_string_lossy()]))?;
        let mut child = self
            .command(&["tee", path])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        child
            .stdin
            .take()
            .context("tee has no input")?
            .write_all(text.as_bytes())?;
        ensure!(child.wait()?.success(), "{path} cannot be written");
        Ok(())
    }

    /// Removes a system file.
    pub(crate) fn remove(&self, path: &str) -> Result<()> {
        run(&mut self.command(&["rm", "-f", path]))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let whole: Vec<_> = self.prefix.iter().chain(arguments).collect();
        let mut command = Command::new(whole[0]);
        command.args(&whole[1..]);
        println!("  {}", shown(&command));
        command
    }
}

/// Installs `packages` and prints the reason.
pub(crate) fn install(packages: &[&str], why: &str) -> Result<()> {
    let names = packages.join(", ");
    println!("Installing from Debian: {names} ({why}).");
    let elsewhere = format!("install {names} with your distribution's tools ({why})");
    let apt = Apt::prepare(packages, &elsewhere)?;
    for package in packages {
        apt.install(package)?;
    }
    Ok(())
}

/// Whether a program of this name is in PATH.
pub(crate) fn is_program(name: &str) -> bool {
    find_program(name).is_some()
}

/// The program of this name in PATH.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Whether this process runs as root.
pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

/// Prefix of commands that need root; `None` without root and passwordless sudo.
fn privileged_prefix() -> Option<Vec<&'static str>> {
    if is_root() {
        return Some(Vec::new());
    }
    let works = Command::new("sudo")
        .args(["-n", "true"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    works.then(|| vec!["sudo", "-n"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_path() {
        assert!(is_program("sh"));
        assert!(!is_program("no-program-has-this-name"));
    }
}
