//! Debian's kernel, boot loaders and virtual machines, for the tests that boot images.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::python::VIRT_FIRMWARE;
use crate::apt;
use crate::cargo::root;
use crate::command::run;

/// Packages, with a file of each.
const NEEDED: [(&str, &str); 15] = [
    ("qemu-system-x86", "/usr/bin/qemu-system-x86_64"),
    (
        "qemu-block-extra",
        "/usr/lib/x86_64-linux-gnu/qemu/block-curl.so",
    ),
    ("ipxe-qemu", "/usr/lib/ipxe/qemu/pxe-virtio.rom"),
    ("ovmf", "/usr/share/OVMF/OVMF_CODE_4M.ms.fd"),
    ("genisoimage", "/usr/bin/genisoimage"),
    ("syslinux-utils", "/usr/bin/isohybrid"),
    ("isolinux", "/usr/lib/ISOLINUX/isolinux.bin"),
    (
        "syslinux-common",
        "/usr/lib/syslinux/modules/bios/ldlinux.c32",
    ),
    ("shim-signed", "/usr/lib/shim/shimx64.efi.signed"),
    (
        "grub-efi-amd64-signed",
        "/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed",
    ),
    ("mtools", "/usr/bin/mcopy"),
    ("dosfstools", "/sbin/mkfs.vfat"),
    ("binutils", "/usr/bin/strip"),
    ("e2fsprogs", "/sbin/debugfs"),
    ("gdisk", "/sbin/sgdisk"),
];
/// Of either package, which exclude each other.
const BUSYBOX: &str = "/bin/busybox";
/// Depends on the newest kernel.
const KERNEL: &str = "linux-image-cloud-amd64";

/// Another architecture whose machines are emulated.
pub(super) struct ForeignArchitecture {
    /// Name at Debian, and of the folder.
    pub(super) name: &'static str,
    /// Packages of this system that emulate its machines and make its images, with a file of each.
    needed: &'static [(&'static str, &'static str)],
    /// Depends on the newest kernel.
    kernel: &'static str,
    /// Packages of the architecture that are unpacked beside its kernel.
    packages: &'static [&'static str],
}

pub(super) const ARM64: ForeignArchitecture = ForeignArchitecture {
    name: "arm64",
    needed: &[
        ("qemu-system-arm", "/usr/bin/qemu-system-aarch64"),
        ("qemu-efi-aarch64", "/usr/share/AAVMF/AAVMF_VARS.ms.fd"),
    ],
    kernel: "linux-image-cloud-arm64",
    packages: &["busybox-static", "shim-signed", "grub-efi-arm64-signed"],
};

pub(super) const PPC64LE: ForeignArchitecture = ForeignArchitecture {
    name: "ppc64el",
    needed: &[
        ("qemu-system-ppc", "/usr/bin/qemu-system-ppc64"),
        ("grub-common", "/usr/bin/grub-mkrescue"),
        ("xorriso", "/usr/bin/xorriso"),
    ],
    kernel: "linux-image-powerpc64le",
    packages: &["busybox-static", "grub-ieee1275-bin"],
};

/// Tools beside those of packages.
pub(super) struct BootTools {
    /// The folder of an unpacked kernel.
    pub(super) kernel: PathBuf,
    /// The program that writes variables of UEFI.
    pub(super) virt_fw_vars: PathBuf,
}

/// The tools; installs packages and downloads the rest if they are missing.
pub(super) fn ensure() -> Result<BootTools> {
    let mut packages = missing(&NEEDED);
    if !Path::new(BUSYBOX).exists() {
        packages.push("busybox-static");
    }
    if !packages.is_empty() {
        apt::install(&packages, "virtual machines boot images")?;
    }
    let kernel = unpacked("kernel", |folder| {
        download(folder, &[&newest(KERNEL, None)?], None)
    })?;
    Ok(BootTools {
        kernel,
        virt_fw_vars: VIRT_FIRMWARE.ensure()?,
    })
}

impl ForeignArchitecture {
    /// The folder of its unpacked packages; installs and downloads them if they are missing.
    pub(super) fn ensure(&self) -> Result<PathBuf> {
        let packages = missing(self.needed);
        if !packages.is_empty() {
            apt::install(&packages, "virtual machines of another kind boot images")?;
        }
        unpacked(self.name, |folder| {
            let apt = self.apt(folder)?;
            // A mirror that is being updated lacks some indices: the others may be enough.
            if let Err(error) = run(apt_command("apt-get", Some(&apt)).arg("update")) {
                println!("not all indices of {} are here: {error:#}", self.name);
            }
            let kernel = newest(self.kernel, Some(&apt))?;
            let packages = [&[kernel.as_str()], self.packages].concat();
            download(folder, &packages, Some(&apt))
        })
    }

    /// A configuration of apt for its packages, apart from those of this system. Its path.
    fn apt(&self, folder: &Path) -> Result<PathBuf> {
        let state = folder.join("apt");
        for below in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(state.join(below))?;
        }
        fs::write(state.join("status"), "")?;
        let text = format!(
            "APT::Architecture \"{1}\";\nAPT::Architectures {{ \"{1}\"; }};\nDir::State \"{0}\";\n\
             Dir::State::status \"{0}/status\";\nDir::Cache \"{0}/cache\";\n",
            state.display(),
            self.name,
        );
        let path = state.join("apt.conf");
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }
}

fn missing(needed: &[(&'static str, &str)]) -> Vec<&'static str> {
    let missing = needed.iter().filter(|(_, file)| !Path::new(file).exists());
    missing.map(|(package, _)| *package).collect()
}

/// A folder of tools, filled once.
pub(super) fn unpacked(name: &str, fill: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let folder = root().join("target/tools").join(name);
    // Written last: an interrupted download is repeated.
    let done = folder.join("unpacked");
    if !done.is_file() {
        println!(
            "{name} is not here: apt-get downloads it into {}.",
            folder.display()
        );
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        fill(&folder)?;
        fs::write(&done, "").with_context(|| format!("writing {}", done.display()))?;
    }
    Ok(folder)
}

/// `apt-get` or `apt-cache`, by another configuration if there is one.
fn apt_command(program: &str, config: Option<&Path>) -> Command {
    let mut command = Command::new(program);
    if let Some(config) = config {
        command.env("APT_CONFIG", config);
    }
    command
}

/// The package with the newest kernel.
fn newest(kernel: &str, config: Option<&Path>) -> Result<String> {
    let depends = apt_command("apt-cache", config)
        .args(["depends", kernel])
        .output()?;
    let depends = String::from_utf8_lossy(&depends.stdout);
    depends
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "))
        .find(|package| package.starts_with("linux-image-"))
        .map(str::to_owned)
        .with_context(|| format!("{kernel} is not known to apt"))
}

/// Downloads packages and unpacks them into `folder`.
pub(super) fn download(folder: &Path, packages: &[&str], config: Option<&Path>) -> Result<()> {
    run(apt_command("apt-get", config)
        .arg("download")
        .args(packages)
        .current_dir(folder))?;
    let files = fs::read_dir(folder)?.filter_map(Result::ok);
    for file in files.map(|entry| entry.path()) {
        if file.extension().is_none_or(|kind| kind != "deb") {
            continue;
        }
        run(Command::new("dpkg-deb")
            .arg("--extract")
            .arg(&file)
            .arg(folder))?;
        fs::remove_file(&file).with_context(|| format!("removing {}", file.display()))?;
    }
    Ok(())
}
