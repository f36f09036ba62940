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
const NEEDED: [(&str, &str); 11] = [
    ("qemu-system-x86", "/usr/bin/qemu-system-x86_64"),
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
];
/// Of either package, which exclude each other.
const BUSYBOX: &str = "/bin/busybox";
/// Depends on the newest kernel.
const KERNEL: &str = "linux-image-cloud-amd64";

/// Tools beside those of packages.
pub(super) struct BootTools {
    /// The folder of an unpacked kernel.
    pub(super) kernel: PathBuf,
    /// The program that writes variables of UEFI.
    pub(super) virt_fw_vars: PathBuf,
}

/// The tools; installs packages and downloads the rest if they are missing.
pub(super) fn ensure() -> Result<BootTools> {
    let mut missing: Vec<_> = NEEDED
        .iter()
        .filter(|(_, file)| !Path::new(file).exists())
        .map(|(package, _)| *package)
        .collect();
    if !Path::new(BUSYBOX).exists() {
        missing.push("busybox-static");
    }
    if !missing.is_empty() {
        apt::install(&missing, "virtual machines boot images")?;
    }
    let folder = root().join("target/tools/kernel");
    // Written last: an interrupted download is repeated.
    let done = folder.join("unpacked");
    if !done.is_file() {
        println!(
            "A kernel is not here: apt-get downloads one into {}.",
            folder.display()
        );
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        download(&folder)?;
        fs::write(&done, "").with_context(|| format!("writing {}", done.display()))?;
    }
    Ok(BootTools {
        kernel: folder,
        virt_fw_vars: VIRT_FIRMWARE.ensure()?,
    })
}

fn download(folder: &Path) -> Result<()> {
    let depends = Command::new("apt-cache")
        .args(["depends", KERNEL])
        .output()?;
    let depends = String::from_utf8_lossy(&depends.stdout).into_owned();
    let package = depends
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "))
        .find(|package| package.starts_with("linux-image-"))
        .with_context(|| format!("{KERNEL} is not known to apt"))?;
    run(Command::new("apt-get")
        .args(["download", package])
        .current_dir(folder))?;
    let mut files = fs::read_dir(folder)?
        .filter_map(Result::ok)
        .map(|entry| entry.path());
    let is_package = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "deb");
    let file = files
        .find(is_package)
        .context("apt-get downloads no package")?;
    run(Command::new("dpkg-deb")
        .arg("--extract")
        .arg(&file)
        .arg(folder))?;
    fs::remove_file(&file).with_context(|| format!("removing {}", file.display()))
}
