//! Virtual machines that boot an image with the firmware of real ones.

pub mod live_image;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::process::{Child, Command};

use crate::scratch::Scratch;

/// Longer boots are hangs, also of emulated machines on busy processors.
const BOOT_LIMIT: Duration = Duration::from_mins(20);
/// Files of the Debian package ovmf: firmware, and its variables before the first boot. With Secure Boot, the keys of
/// Microsoft are among them.
const UEFI: [&str; 2] = [
    "/usr/share/OVMF/OVMF_CODE_4M.fd",
    "/usr/share/OVMF/OVMF_VARS_4M.fd",
];
const SECURE_UEFI: [&str; 2] = [
    "/usr/share/OVMF/OVMF_CODE_4M.ms.fd",
    "/usr/share/OVMF/OVMF_VARS_4M.ms.fd",
];
/// Those of the package qemu-efi-aarch64.
const SECURE_ARM64_UEFI: [&str; 2] = [
    "/usr/share/AAVMF/AAVMF_CODE.ms.fd",
    "/usr/share/AAVMF/AAVMF_VARS.ms.fd",
];
/// Path of virt-fw-vars, which writes variables of UEFI: `cargo xtask test` sets it.
const FIRMWARE_VARIABLES: &str = "VIRT_FW_VARS";
/// The host, as a machine sees it.
pub const HOST_ADDRESS: &str = "10.0.2.2";

/// The file with the output of a machine's console.
const CONSOLE: &str = "console";
/// The socket for input of that console, and the file with the output of the second serial line.
const KEYBOARD: &str = "keyboard";
const AGENT_LOG: &str = "agent";

/// Firmware of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Firmware {
    /// The old one of PCs.
    Bios,
    /// The new one.
    Uefi,
    /// The new one, which runs signed programs only.
    SecureUefi,
    /// That of ARM machines, likewise.
    SecureArm64,
    /// Open Firmware of POWER machines.
    Power,
}

/// The medium that a machine boots.
#[derive(Debug, Clone)]
pub enum BootMedium {
    /// A CD drive.
    Cd(PathBuf),
    /// A CD drive whose sectors are read from this URL, as management controllers do for virtual media.
    VirtualCd(String),
    /// A USB stick.
    Usb(PathBuf),
    /// The network card's iPXE runs this script.
    Network(PathBuf),
    /// The firmware downloads the image from this URL.
    Http(String),
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

/// A machine that runs until it is dropped, or switches itself off.
#[derive(Debug)]
pub struct BootedMachine {
    child: Child,
    folder: Scratch,
    /// Stays open: the serial line takes its bytes one by one.
    keyboard: Option<OwnedWriteHalf>,
}

impl BootedMachine {
    /// Switches a machine on, with a disk or without.
    ///
    /// Errors: the emulator does not start.
    pub fn start(firmware: Firmware, medium: &BootMedium, disk: Option<&Path>) -> Result<Self> {
        let folder = Scratch::new()?;
        let mut command = command(firmware, medium, &folder)?;
        let path = |name: &str| folder.path().join(name).display().to_string();
        let console = format!(
            "socket,id=console,server=on,wait=off,path={},logfile={}",
            path(KEYBOARD),
            path(CONSOLE)
        );
        command.args(["-chardev", &console, "-serial", "chardev:console"]);
        command.args(["-serial", &format!("file:{}", path(AGENT_LOG))]);
        if let Some(disk) = disk {
            let drive = format!("if=none,id=disk,format=raw,file={}", disk.display());
            command.args([
                "-drive",
                &drive,
                "-device",
                "virtio-blk-pci,drive=disk,serial=disk0",
            ]);
        }
        let child = command.spawn().context("running the machine")?;
        Ok(Self {
            child,
            folder,
            keyboard: None,
        })
    }

    /// Types text on its console.
    ///
    /// Errors: the machine is off.
    pub async fn type_text(&mut self, text: &str) -> Result<()> {
        if self.keyboard.is_none() {
            let socket = self.folder.path().join(KEYBOARD);
            let connected = UnixStream::connect(socket).await;
            let (mut output, input) = connected.context("connecting to the console")?.into_split();
            // The file has it; unread, it would block the serial line.
            tokio::spawn(async move { tokio::io::copy(&mut output, &mut tokio::io::sink()).await });
            self.keyboard = Some(input);
        }
        let keyboard = self.keyboard.as_mut().context("no connection")?;
        keyboard.write_all(text.as_bytes()).await.context("typing")
    }

    /// Waits until it has switched itself off.
    ///
    /// Errors: not in time, with the log of its agent.
    pub async fn wait(&mut self) -> Result<()> {
        let ended = tokio::time::timeout(BOOT_LIMIT, self.child.wait()).await;
        ended.with_context(|| format!("it does not end\n{}", self.agent_log()))??;
        Ok(())
    }

    /// The output of its console.
    pub fn console(&self) -> String {
        self.output(CONSOLE)
    }

    /// The log of the discovery agent.
    pub fn agent_log(&self) -> String {
        self.output(AGENT_LOG)
    }

    fn output(&self, name: &str) -> String {
        let bytes = fs::read(self.folder.path().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Boots a machine and waits until it has switched itself off.
///
/// Errors: it does not start, or does not reach the end of its first program; with the last lines of its console.
pub async fn boot(firmware: Firmware, medium: &BootMedium) -> Result<BootReport> {
    let folder = Scratch::new()?;
    let mut command = command(firmware, medium, &folder)?;
    let console = folder.path().join(CONSOLE);
    command
        .arg("-serial")
        .arg(format!("file:{}", console.display()));
    let errors = match tokio::time::timeout(BOOT_LIMIT, command.output()).await {
        Ok(output) => output.context("running the machine")?.stderr,
        Err(_) => b"it does not end".to_vec(),
    };
    let errors = String::from_utf8_lossy(&errors);
    let console = fs::read(folder.path().join(CONSOLE)).unwrap_or_default();
    let report = BootReport::read(&String::from_utf8_lossy(&console));
    ensure!(
        report.values.contains_key("end"),
        "{firmware:?} does not boot {medium:?}: {errors}\n{}",
        report.console
    );
    Ok(report)
}

/// The emulator of a machine, without a console.
fn command(firmware: Firmware, medium: &BootMedium, folder: &Scratch) -> Result<Command> {
    let mut command = Command::new(match firmware {
        Firmware::SecureArm64 => "qemu-system-aarch64",
        Firmware::Power => "qemu-system-ppc64",
        Firmware::Bios | Firmware::Uefi | Firmware::SecureUefi => "qemu-system-x86_64",
    });
    command.args(["-m", "1024", "-display", "none", "-no-reboot"]);
    let variables = folder.path().join("variables.fd");
    match firmware {
        Firmware::Bios => {}
        Firmware::Power => {
            command.args(["-machine", "pseries", "-vga", "none"]);
        }
        Firmware::Uefi => uefi(&mut command, UEFI, &variables)?,
        Firmware::SecureUefi => {
            command.args(["-machine", "q35,smm=on"]);
            command.args(["-global", "driver=cfi.pflash01,property=secure,value=on"]);
            uefi(&mut command, SECURE_UEFI, &variables)?;
        }
        Firmware::SecureArm64 => {
            command.args(["-machine", "virt", "-cpu", "cortex-a72"]);
            uefi(&mut command, SECURE_ARM64_UEFI, &variables)?;
        }
    }
    let mut network = "user,id=net".to_owned();
    let drive = |path: &Path, id| {
        format!(
            "if=none,id={id},format=raw,readonly=on,file={}",
            path.display()
        )
    };
    match medium {
        BootMedium::Cd(path) if firmware == Firmware::SecureArm64 => command
            .args(["-drive", &drive(path, "cd")])
            .args(["-device", "virtio-scsi-pci", "-device", "scsi-cd,drive=cd"]),
        BootMedium::Cd(path) => command.arg("-cdrom").arg(path).args(["-boot", "d"]),
        BootMedium::VirtualCd(url) => {
            let file = format!("file.driver=http,file.url={url}");
            let drive = format!("if=none,id=cd,media=cdrom,readonly=on,driver=raw,{file}");
            command.args(["-drive", &drive, "-device", "ide-cd,drive=cd", "-boot", "d"])
        }
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
        BootMedium::Http(url) => {
            boot_from(url, &variables)?;
            &mut command
        }
    };
    command.args(["-netdev", &network, "-device", "virtio-net-pci,netdev=net"]);
    command
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true);
    Ok(command)
}

/// Adds the firmware, with a copy of its variables.
fn uefi(command: &mut Command, [code, variables]: [&str; 2], copy: &Path) -> Result<()> {
    fs::copy(variables, copy).with_context(|| format!("copying {variables}"))?;
    let code = format!("if=pflash,format=raw,unit=0,readonly=on,file={code}");
    let variables = format!("if=pflash,format=raw,unit=1,file={}", copy.display());
    command.args(["-drive", &code, "-drive", &variables]);
    Ok(())
}

/// Sets the variables that make the firmware boot from `url` once.
fn boot_from(url: &str, variables: &Path) -> Result<()> {
    let program = std::env::var_os(FIRMWARE_VARIABLES);
    let program = program.with_context(|| format!("{FIRMWARE_VARIABLES} is not set"))?;
    let output = std::process::Command::new(program)
        .arg("--inplace")
        .arg(variables)
        .args(["--set-boot-uri", url])
        .output()
        .context("running virt-fw-vars")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "virt-fw-vars: {errors}");
    Ok(())
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
