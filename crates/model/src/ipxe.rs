//! The script by which iPXE boots the discovery system.

/// Kernel arguments of every discovery image.
const ARGUMENTS: &str = "random.trust_cpu=on rd.luks.options=discard ignition.firstboot \
     ignition.platform.id=metal console=tty1 console=ttyS1,115200n8 \
     coreos.inst.persistent-kargs=\"console=tty1 console=ttyS1,115200n8\"";

/// The script, with the URLs of its files and more kernel arguments.
///
/// Source: assisted-service, internal/bminventory/inventory_v2_handlers.go, bootIPXEScript.
pub fn boot_script<'a>(
    kernel: &str,
    rootfs: &str,
    initrd: &str,
    arguments: impl IntoIterator<Item = &'a str>,
) -> String {
    let mut line =
        format!("kernel {kernel} initrd=initrd coreos.live.rootfs_url={rootfs} {ARGUMENTS}");
    for argument in arguments {
        line.push(' ');
        line.push_str(argument);
    }
    format!("#!ipxe\ninitrd --name initrd {initrd}\n{line}\nboot\n")
}
