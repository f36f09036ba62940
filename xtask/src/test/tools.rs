//! Programs and files that tests use where they can be had, by the variables that name them.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::python::{KUBERNETES_VALIDATE, SUSHY_TOOLS};
use super::{boot_tools, coreos_installer, distribution, etcd, kubernetes, openid_provider};

/// Those that were found or installed.
#[derive(Debug, Default)]
pub(super) struct TestTools(Vec<(&'static str, PathBuf)>);

impl TestTools {
    /// Installs missing ones; those that take long with `full` alone. A tool that cannot be had is named: its tests are
    /// skipped.
    pub(super) fn ensure(full: bool) -> Self {
        let mut tools = Self::default();
        // For the mirroring tool.
        tools.add("DOCKER_REGISTRY", distribution::ensure());
        // Folder with the node_modules of an OpenID provider, for log-ins.
        tools.add("OPENID_PROVIDER", openid_provider::ensure());
        // Folder of etcd's programs, for replacements of control nodes.
        tools.add("ETCD_PROGRAMS", etcd::ensure());
        // A Redfish service of another project.
        tools.add("SUSHY_EMULATOR", SUSHY_TOOLS.ensure());
        tools.add("KUSTOMIZE", kubernetes::kustomize());
        tools.add("KUBERNETES_VALIDATE", KUBERNETES_VALIDATE.ensure());
        // Folder of an unpacked kernel, and the program that writes variables of UEFI, for boots of images.
        tools.add_all(
            ["BOOT_KERNEL", "VIRT_FW_VARS"],
            boot_tools::ensure().map(|it| [it.kernel, it.virt_fw_vars]),
        );
        if full {
            tools.add("BOOT_ARM64", boot_tools::ARM64.ensure());
            tools.add("BOOT_PPC64LE", boot_tools::PPC64LE.ensure());
            // The real program that installs a machine, and a folder of images with genuine layouts.
            tools.add_all(
                ["COREOS_INSTALLER", "LIVE_IMAGES"],
                coreos_installer::ensure().map(|it| [it.program, it.images]),
            );
            // Folder of kube-apiserver and etcd.
            tools.add("KUBERNETES_PROGRAMS", kubernetes::programs());
        }
        tools
    }

    fn add(&mut self, variable: &'static str, found: Result<PathBuf>) {
        self.add_all([variable], found.map(|path| [path]));
    }

    fn add_all<const N: usize>(
        &mut self,
        variables: [&'static str; N],
        found: Result<[PathBuf; N]>,
    ) {
        match found {
            Ok(paths) => self.0.extend(variables.into_iter().zip(paths)),
            Err(error) => println!("{} cannot be had here: {error:#}", variables.join(", ")),
        }
    }

    /// Passes their paths to a test program.
    pub(super) fn pass_to(&self, command: &mut Command) {
        command.envs(self.0.iter().map(|(variable, path)| (variable, path)));
    }
}
