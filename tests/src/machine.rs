//! Virtual machines that boot an image with the firmware of real ones.

pub mod live_image;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::process::Command;

/// Longest boot: machines are emulated, on busy processors.
const BOOT_LIMIT: Duration = Duration::from_mins(5);
/// UEFI of the Debian package ovmf.
const UEFI: &str = "/usr/share/OVMF/OVMF_CODE.fd";
/// The host, as a machine sees it.
pub const HOST_ADDRESS: &str = "10.0.2.2";

/// Firmware of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Firmware {
    /// The old one of PCs.
    Bios,
    /// The new one.
    Uefi,
}

/// The medium that a machine boots.
#[derive(Debug, Clone)]
pub enum BootMedium {
    /// A CD drive.
    Cd(PathBuf),
    /// A USB stick.
    Usb(PathBuf),
    /// The network card's iPXE runs this script.
    Network(PathBuf),
}

/// The report of a machine's first program.
#[derive(Debug, Default)]
pub struct BootReport {
    /// Members by name: `cmdline`, `firmware`, `rootfs` (the SHA-256 of the download).
    pub values: BTreeMap<String, String>,
    /// SHA-256 of the initrd's files by path.
    pub files: BTreeMap<String, String>,
    /// The last lines of the console.
    pub console: String,
}

/// Boots a machine and waits until it has switched itself off.
///
/// Errors: it does not start, or does not reach the end of its first program; with the last lines of its console.
pub async fn boot(firmware: Firmware, medium: &BootMedium) -> Result<BootReport> {
    let mut command = Command::new("qemu-system-x86_64");
    command.args([
        "-m",
        "1024",
        "-display",
        "none",
        "-serial",
        "stdio",
        "-no-reboot",
    ]);
    if firmware == Firmware::Uefi {
        command.args([
            "-drive",
            &format!("if=pflash,format=raw,readonly=on,file={UEFI}"),
        ]);
    }
    let mut network = "user,id=net".to_owned();
    let drive = |path: &Path, id| {
        format!(
            "if=none,id={id},format=raw,readonly=on,file={}",
            path.display()
        )
    };
    match medium {
        BootMedium::Cd(path) => command.arg("-cdrom").arg(path).args(["-boot", "d"]),
        BootMedium::Usb(path) => command.args(["-drive", &drive(path, "stick")]).args([
            "-device",
            "qemu-xhci",
            "-device",
            "usb-storage,drive=stick,bootindex=0",
        ]),
        BootMedium::Network(script) => {
            let folder = script.parent().context("a script is in a folder")?;
            let name = script.file_name().context("a script has a name")?;
            network = format!(
                "{network},tftp={},bootfile={}",
                folder.display(),
                name.display()
            );
            command.args(["-boot", "n"])
        }
    };
    command.args(["-netdev", &network, "-device", "virtio-net-pci,netdev=net"]);
    command
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(BOOT_LIMIT, command.output());
    let output = output
        .await
        .context("the machine does not end")?
        .context("running qemu-system-x86_64")?;
    let console = String::from_utf8_lossy(&output.stdout);
    let report = BootReport::read(&console);
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        report.values.contains_key("end"),
        "{firmware:?} does not boot {medium:?}: {errors}\n{}",
        report.console
    );
    Ok(report)
}

impl BootReport {
    fn read(console: &str) -> Self {
        let lines: Vec<_> = console.lines().collect();
        let mut report = Self {
            console: lines[lines.len().saturating_sub(20)..].join("\n"),
            ..Self::default()
        };
        for line in console.lines() {
            let Some((_, text)) = line.split_once("REPORT ") else {
                continue;
            };
            let (name, value) = text.split_once(' ').unwrap_or((text, ""));
            match value.rsplit_once(' ') {
                Some((path, digest)) if name == "file" => {
                    report.files.insert(path.to_owned(), digest.to_owned());
                }
                _ => drop(report.values.insert(name.to_owned(), value.to_owned())),
            }
        }
        report
    }
}
