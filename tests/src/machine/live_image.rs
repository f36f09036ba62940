//! A live image that boots: the layout and the tools of the genuine ones, Debian's kernel, and an initrd that reports.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use ignition::archive::EMBED_AREA;
use ignition::{MemberTree, cpio};
use serde_json::json;

/// Version of its operating system.
pub const OS_VERSION: &str = "418.94.202511191518-0";
const ISOLINUX: &str = "/usr/lib/ISOLINUX/isolinux.bin";
const BIOS_MODULES: &str = "/usr/lib/syslinux/modules/bios";
const BUSYBOX: &str = "bin/busybox";
/// Modules that network cards and disks of a virtual machine need, in order.
const MODULES: [&str; 9] = [
    "virtio_ring",
    "virtio",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "failover",
    "net_failover",
    "virtio_net",
    "virtio_blk",
];
/// Programs that firmware with the usual keys accepts, in the Debian packages shim-signed and grub-efi-amd64-signed.
const SIGNED_PROGRAMS: [(&str, &str); 2] = [
    ("usr/lib/shim/shimx64.efi.signed", "BOOTX64.EFI"),
    (
        "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed",
        "grubx64.efi",
    ),
];
const SIGNED_ARM64_PROGRAMS: [(&str, &str); 2] = [
    ("usr/lib/shim/shimaa64.efi.signed", "BOOTAA64.EFI"),
    (
        "usr/lib/grub/arm64-efi-signed/grubaa64.efi.signed",
        "grubaa64.efi",
    ),
];
/// The configuration that GRUB reads on its own.
const GRUB_CONFIG: &str = "boot/grub/grub.cfg";
/// Length of the partition with them. Units: bytes.
const EFI_PARTITION: u64 = 8 << 20;
/// Room after the default kernel arguments.
const KARGS_ROOM: usize = 1024;
/// Length of the root file system. Units: bytes.
const ROOTFS: usize = 3 << 20;
/// Prints the input of early boot, and ends.
const INIT: &str = include_str!("init.sh");
/// NetworkManager and udev of the live system, as far as the agent and coreos-installer need them.
const NMCLI: &str = include_str!("nmcli.sh");
const UDEVADM: &str = include_str!("udevadm.sh");

/// Its root file system: made-up bytes.
pub fn rootfs() -> Vec<u8> {
    vec![7; ROOTFS]
}

/// The parts of an image that depend on the architecture.
#[derive(Debug, Clone)]
pub struct BootParts {
    /// Name in the installer API.
    pub architecture: &'static str,
    /// Folder of an unpacked package with a kernel.
    pub kernel: PathBuf,
    /// Folder with the programs of other packages.
    programs: PathBuf,
    console: &'static str,
    /// Boots by BIOS, too, and from USB.
    is_hybrid: bool,
    /// Programs of UEFI; none where Open Firmware starts GRUB.
    signed_programs: Option<[(&'static str, &'static str); 2]>,
    /// Programs of the live system that the discovery agent runs.
    pub live_programs: Vec<PathBuf>,
}

impl BootParts {
    /// Those of PCs, with this system's programs.
    pub fn x86(kernel: &Path) -> Self {
        Self {
            architecture: "x86_64",
            kernel: kernel.to_owned(),
            programs: "/".into(),
            console: "ttyS0",
            is_hybrid: true,
            signed_programs: Some(SIGNED_PROGRAMS),
            live_programs: Vec::new(),
        }
    }

    /// Those of ARM machines, all in one folder of unpacked packages.
    pub fn arm64(packages: &Path) -> Self {
        Self {
            architecture: "arm64",
            kernel: packages.to_owned(),
            programs: packages.to_owned(),
            console: "ttyAMA0",
            is_hybrid: false,
            signed_programs: Some(SIGNED_ARM64_PROGRAMS),
            live_programs: Vec::new(),
        }
    }

    /// Those of POWER machines, likewise.
    pub fn ppc64le(packages: &Path) -> Self {
        Self {
            architecture: "ppc64le",
            kernel: packages.to_owned(),
            programs: packages.to_owned(),
            console: "hvc0",
            is_hybrid: false,
            signed_programs: None,
            live_programs: Vec::new(),
        }
    }

    /// Configurations of the boot loaders, by path, with room for kernel arguments.
    fn loader_configs(&self, kargs: &str) -> Vec<(&'static str, String)> {
        let padding = "#".repeat(KARGS_ROOM);
        let area = format!("{kargs}\n{padding}# COREOS_KARG_EMBED_AREA\n");
        let grub = format!(
            "set timeout=0\nmenuentry 'CoreOS (Live)' {{\n\tlinux /images/pxeboot/vmlinuz {area}\tinitrd /images/pxeboot/initrd.img /images/ignition.img\n}}\n"
        );
        if self.signed_programs.is_none() {
            return vec![(GRUB_CONFIG, grub)];
        }
        let mut configs = vec![("EFI/redhat/grub.cfg", grub)];
        if self.is_hybrid {
            let isolinux = format!(
                "default linux\ntimeout 1\nprompt 0\nlabel linux\n  kernel /images/pxeboot/vmlinuz\n  append initrd=/images/pxeboot/initrd.img,/images/ignition.img {area}"
            );
            configs.push(("isolinux/isolinux.cfg", isolinux));
        }
        configs
    }
}

/// Builds the image into `folder`.
///
/// Errors: a tool is missing or fails.
pub fn build(folder: &Path, parts: &BootParts) -> Result<PathBuf> {
    let (root, kernel) = (folder.join("root"), &parts.kernel);
    let volume = format!("rhcos-{OS_VERSION}");
    // The kernel counts an emulated timer's ticks, which a busy machine delays until it gives up.
    let kargs = format!(
        "rw no_timer_check console={} coreos.liveiso={volume} ignition.firstboot ignition.platform.id=metal",
        parts.console
    );
    let put = |path: &str, bytes: &[u8]| -> Result<()> {
        let path = root.join(path);
        fs::create_dir_all(path.with_file_name(""))?;
        fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))
    };
    let vmlinuz = find(&kernel.join("boot"), "vmlinu")?;
    put("images/pxeboot/vmlinuz", &fs::read(vmlinuz)?)?;
    put("images/pxeboot/initrd.img", &initrd(parts)?)?;
    put("images/pxeboot/rootfs.img", &rootfs())?;
    put("images/ignition.img", &vec![0; EMBED_AREA])?;
    let igninfo = json!({ "file": "images/ignition.img" });
    put("coreos/igninfo.json", igninfo.to_string().as_bytes())?;
    let mut areas = Vec::new();
    for (path, text) in parts.loader_configs(&kargs) {
        put(path, text.as_bytes())?;
        let offset = text.find(&kargs);
        areas.push(json!({ "path": path, "offset": offset, "pad": "#", "end": "\n" }));
    }
    let size = kargs.len() + 1 + KARGS_ROOM;
    let record = json!({ "default": kargs, "files": areas, "size": size });
    put("coreos/kargs.json", record.to_string().as_bytes())?;
    if parts.is_hybrid {
        put("isolinux/isolinux.bin", &fs::read(ISOLINUX)?)?;
        for name in ["ldlinux.c32", "libcom32.c32", "libutil.c32", "vesamenu.c32"] {
            let module = fs::read(Path::new(BIOS_MODULES).join(name))?;
            put(&format!("isolinux/{name}"), &module)?;
        }
    }
    let image = folder.join("live.iso");
    let Some(programs) = parts.signed_programs else {
        pack_for_power(parts, &root, &volume, &image)?;
        return Ok(image);
    };
    efi_partition(parts, programs, &root.join("images/efiboot.img"))?;
    // Debian's GRUB looks for the first file, and for its configuration on that file system.
    put(".disk/info", b"")?;
    put(GRUB_CONFIG, b"configfile /EFI/redhat/grub.cfg\n")?;
    pack(parts, &root, &volume, &image)?;
    Ok(image)
}

/// Packs the folder as coreos-assembler does.
fn pack(parts: &BootParts, root: &Path, volume: &str, image: &Path) -> Result<()> {
    let mut genisoimage = Command::new("genisoimage");
    genisoimage
        .args(["-quiet", "-V", volume, "-volset", volume])
        .args(["-rational-rock", "-J", "-joliet-long"]);
    if parts.is_hybrid {
        genisoimage
            .args(["-eltorito-boot", "isolinux/isolinux.bin"])
            .args(["-eltorito-catalog", "isolinux/boot.cat"])
            .args(["-no-emul-boot", "-boot-load-size", "4", "-boot-info-table"])
            .arg("-eltorito-alt-boot");
    }
    genisoimage.args(["-efi-boot", "images/efiboot.img", "-no-emul-boot", "-o"]);
    run(genisoimage.arg(image).arg(root))?;
    if parts.is_hybrid {
        run(Command::new("isohybrid").arg("--uefi").arg(image))?;
    }
    Ok(())
}

/// Packs the folder as coreos-assembler does for POWER.
fn pack_for_power(parts: &BootParts, root: &Path, volume: &str, image: &Path) -> Result<()> {
    let loader = parts.programs.join("usr/lib/grub/powerpc-ieee1275");
    let mut mkrescue = Command::new("grub-mkrescue");
    mkrescue
        .arg("-d")
        .arg(loader)
        .arg("-o")
        .arg(image)
        .arg(root);
    run(mkrescue.args(["--", "-volid", volume]))
}

/// The partition that UEFI boots: shim and GRUB.
fn efi_partition(parts: &BootParts, programs: [(&str, &str); 2], image: &Path) -> Result<()> {
    fs::File::create(image)?.set_len(EFI_PARTITION)?;
    run(Command::new("/sbin/mkfs.vfat").arg(image))?;
    run(Command::new("mmd")
        .arg("-i")
        .arg(image)
        .args(["::EFI", "::EFI/BOOT"]))?;
    for (program, name) in programs {
        let (from, to) = (parts.programs.join(program), format!("::EFI/BOOT/{name}"));
        let mut mcopy = Command::new("mcopy");
        run(mcopy.arg("-i").arg(image).arg(from).arg(to))?;
    }
    Ok(())
}

fn initrd(parts: &BootParts) -> Result<Vec<u8>> {
    let modules = parts.kernel.join("lib/modules");
    let mut tree = MemberTree::default();
    let mut add = |path: &str, bytes: Vec<u8>| tree.add(path, cpio::REGULAR | 0o755, bytes);
    add("/init", INIT.into());
    add("/usr/bin/nmcli", NMCLI.into());
    add("/usr/bin/udevadm", UDEVADM.into());
    add("/bin/busybox", fs::read(parts.programs.join(BUSYBOX))?);
    for (number, name) in MODULES.iter().enumerate() {
        let module = find_below(&modules, &format!("{name}.ko"))?;
        add(&format!("/modules/{number}.ko"), fs::read(module)?);
    }
    for program in &parts.live_programs {
        let name = program.file_name().context("a program has a name")?;
        add(&format!("/usr/bin/{}", name.display()), fs::read(program)?);
        for library in libraries(program)? {
            add(&library, fs::read(&library)?);
        }
    }
    let keyfiles = "/etc/NetworkManager/system-connections";
    for folder in [
        "/dev", keyfiles, "/proc", "/run", "/sys", "/tmp", "/var/tmp",
    ] {
        tree.add(folder, cpio::DIRECTORY | 0o755, "");
    }
    Ok(tree.pack()?)
}

/// The libraries of a program of this system, with its loader; none of a script or a static program.
fn libraries(program: &Path) -> Result<Vec<String>> {
    let output = Command::new("ldd")
        .arg(program)
        .output()
        .context("running ldd")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let path = |line: &str| {
        let path = line.split_whitespace().find(|word| word.starts_with('/'))?;
        Some(path.to_owned())
    };
    Ok(text.lines().filter_map(path).collect())
}

fn find(folder: &Path, start: &str) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let named = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(start))
    };
    paths
        .find(named)
        .with_context(|| format!("no {start} in {}", folder.display()))
}

fn find_below(folder: &Path, name: &str) -> Result<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)?.filter_map(Result::ok) {
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if path.ends_with(name) {
                return Ok(path);
            }
        }
    }
    anyhow::bail!("no {name} in {}", folder.display())
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("running {}", command.get_program().display()))?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{}: {text}",
        command.get_program().display()
    );
    Ok(())
}
