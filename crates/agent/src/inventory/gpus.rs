//! Graphics cards and accelerators.
//!
//! Source: assisted-installer-agent, src/inventory/gpu.go.

use model::inventory::Gpu;

use super::vendor::UNKNOWN;
use crate::HostFiles;

/// PCI classes: VGA, 3D controller, other display controller, processing accelerator.
const CLASSES: [&str; 4] = ["0x0300", "0x0302", "0x0380", "0x1200"];
/// Names of vendors and devices by their numbers, where the host has them.
const NAMES: [&str; 2] = ["/usr/share/hwdata/pci.ids", "/usr/share/misc/pci.ids"];

pub(super) fn gpus(files: &HostFiles) -> Vec<Gpu> {
    const FOLDER: &str = "/sys/bus/pci/devices";
    let number = |address: &str, name: &str| {
        let text = files.text(&format!("{FOLDER}/{address}/{name}"))?;
        Some(text.trim_start_matches("0x").to_owned())
    };
    let is_gpu = |address: &String| {
        files
            .text(&format!("{FOLDER}/{address}/class"))
            .is_some_and(|class| CLASSES.iter().any(|known| class.starts_with(known)))
    };
    let addresses: Vec<String> = files.names(FOLDER).into_iter().filter(is_gpu).collect();
    if addresses.is_empty() {
        return Vec::new();
    }
    let names = NAMES
        .iter()
        .find_map(|path| files.text(path))
        .unwrap_or_default();
    let gpu = |address: String| {
        let vendor_id = number(&address, "vendor").unwrap_or_default();
        let device_id = number(&address, "device").unwrap_or_default();
        let (vendor, name) = names_of(&names, &vendor_id, &device_id);
        Gpu {
            vendor: vendor.unwrap_or(UNKNOWN).to_owned(),
            name: name.unwrap_or(UNKNOWN).to_owned(),
            vendor_id,
            device_id,
            address,
        }
    };
    addresses.into_iter().map(gpu).collect()
}

/// Looks a vendor and its device up: lines `vvvv  Name`, below each `<tab>dddd  Name`. Source: pci.ids(5).
fn names_of<'a>(ids: &'a str, vendor: &str, device: &str) -> (Option<&'a str>, Option<&'a str>) {
    let mut lines = ids.lines().skip_while(|line| {
        !line
            .strip_prefix(vendor)
            .is_some_and(|rest| rest.starts_with("  "))
    });
    let Some(line) = lines.next() else {
        return (None, None);
    };
    let name = lines
        .take_while(|line| line.starts_with('\t') || line.starts_with('#'))
        .filter(|line| !line.starts_with("\t\t"))
        .find_map(|line| line.strip_prefix('\t')?.strip_prefix(device));
    (Some(line[vendor.len()..].trim()), name.map(str::trim))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_names() {
        let ids = "# comment\n10de  NVIDIA Corporation\n\t1db4  GV100GL\n\t\t10de 1214  Tesla\n\t1eb8  TU104GL\n\
                   1234  Technical Corp.\n\t1111  VGA\n";
        assert_eq!(
            names_of(ids, "10de", "1eb8"),
            (Some("NVIDIA Corporation"), Some("TU104GL"))
        );
        assert_eq!(
            names_of(ids, "1234", "1eb8"),
            (Some("Technical Corp."), None)
        );
        assert_eq!(names_of(ids, "ffff", "1eb8"), (None, None));
    }
}
