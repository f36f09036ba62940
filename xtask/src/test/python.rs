//! Python programs of tests: from PyPI, each in a folder of its own.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::apt;
use crate::cargo::root;
use crate::command::run;

/// A program of a package.
pub(super) struct PythonProgram {
    package: &'static str,
    version: &'static str,
    program: &'static str,
}

/// The version that the README requires.
pub(super) const PODMAN_COMPOSE: PythonProgram = PythonProgram {
    package: "podman-compose",
    version: "1.6.0",
    program: "podman-compose",
};
/// Writes variables of UEFI.
pub(super) const VIRT_FIRMWARE: PythonProgram = PythonProgram {
    package: "virt-firmware",
    version: "26.10",
    program: "virt-fw-vars",
};
/// Emulator of BMCs.
pub(super) const SUSHY_TOOLS: PythonProgram = PythonProgram {
    package: "sushy-tools",
    version: "2.2.0",
    program: "sushy-emulator",
};
/// Kubernetes' JSON schemas, and a validator.
pub(super) const KUBERNETES_VALIDATE: PythonProgram = PythonProgram {
    package: "kubernetes-validate",
    version: "1.37.0",
    program: "kubernetes-validate",
};

impl PythonProgram {
    /// Its path; installs it first when it is missing.
    pub(super) fn ensure(&self) -> Result<PathBuf> {
        let (package, version) = (self.package, self.version);
        let folder = root().join(format!("target/tools/{package}-{version}"));
        let program = folder.join("bin").join(self.program);
        if program.is_file() {
            return Ok(program);
        }
        println!(
            "{package} is not here: it is taken from PyPI into {}.",
            folder.display()
        );
        let make = || run(Command::new("python3").args(["-m", "venv"]).arg(&folder));
        if make().is_err() {
            apt::install(&["python3-venv"], "some tests need Python programs")?;
            make()?;
        }
        let requirement = format!("{package}=={version}");
        let install = Command::new(folder.join("bin/pip"))
            .args([
                "install",
                "--quiet",
                "--disable-pip-version-check",
                &requirement,
            ])
            .status();
        let is_installed = install.context("running pip")?.success();
        ensure!(
            is_installed && program.is_file(),
            "pip cannot install {requirement}"
        );
        Ok(program)
    }
}
