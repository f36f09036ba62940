//! Boot order of a host: the persistent one, behind overrides. Source: DSP0268 ComputerSystem, BootOption.

use serde::Serialize;

use super::bmc::Bmc;
use super::document::RedfishDocument;
use super::error::BmcError;

/// Entries of a boot order that are read.
const ENTRY_LIMIT: usize = 16;
/// Longest name of an entry. Units: characters.
const NAME_LIMIT: usize = 100;

/// Kind of a boot source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BootSourceKind {
    /// A disk.
    Disk,
    /// A CD drive, also a virtual one.
    Cd,
    /// PXE or HTTP.
    Network,
    /// Another, or one that cannot be recognised.
    Other,
}

/// An entry of the boot order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BootOrderEntry {
    /// Its reference, as `Boot0003`.
    pub reference: String,
    /// Its name, or the reference.
    pub name: String,
    /// Its kind.
    pub kind: BootSourceKind,
}

/// The boot order, as far as the BMC shows it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct BootOrder {
    /// The first entries.
    pub entries: Vec<BootOrderEntry>,
}

impl BootOrder {
    /// The first entry, if it boots from a CD or the network; none also where the order is not shown.
    pub fn before_disk(&self) -> Option<&BootOrderEntry> {
        let first = self.entries.first()?;
        let is_other_source = matches!(first.kind, BootSourceKind::Cd | BootSourceKind::Network);
        is_other_source.then_some(first)
    }
}

/// Parts of names and device paths, in lower case, with the kind that they show. Device paths decide first: UEFI writes them.
static KINDS: &[(&str, BootSourceKind)] = &[
    ("cdrom(", BootSourceKind::Cd),
    ("mac(", BootSourceKind::Network),
    ("hd(", BootSourceKind::Disk),
    ("nvme(", BootSourceKind::Disk),
    ("optical", BootSourceKind::Cd),
    ("virtual cd", BootSourceKind::Cd),
    ("cdrom", BootSourceKind::Cd),
    ("dvd", BootSourceKind::Cd),
    ("pxe", BootSourceKind::Network),
    ("http", BootSourceKind::Network),
    ("nic.", BootSourceKind::Network),
    ("network", BootSourceKind::Network),
    ("harddisk", BootSourceKind::Disk),
    ("hard d", BootSourceKind::Disk),
    ("hdd", BootSourceKind::Disk),
    ("nvme", BootSourceKind::Disk),
    ("ssd", BootSourceKind::Disk),
    ("raid", BootSourceKind::Disk),
    ("core os", BootSourceKind::Disk),
    ("coreos", BootSourceKind::Disk),
    ("red hat", BootSourceKind::Disk),
];

fn kind(texts: &[&str]) -> BootSourceKind {
    let texts: Vec<String> = texts.iter().map(|text| text.to_lowercase()).collect();
    let found = KINDS
        .iter()
        .find(|(part, _)| texts.iter().any(|text| text.contains(part)));
    found.map_or(BootSourceKind::Other, |(_, kind)| *kind)
}

/// The kind that the standard's alias of an option names.
fn kind_of_alias(alias: &str) -> Option<BootSourceKind> {
    match alias {
        "Hdd" | "SDCard" => Some(BootSourceKind::Disk),
        "Cd" | "UsbCd" => Some(BootSourceKind::Cd),
        "Pxe" | "UefiHttp" => Some(BootSourceKind::Network),
        _ => None,
    }
}

fn entry(reference: &str, options: &[RedfishDocument]) -> Option<BootOrderEntry> {
    let is_meant =
        |option: &&RedfishDocument| option.text("/BootOptionReference") == Some(reference);
    let option = options.iter().find(is_meant);
    if option.is_some_and(|option| option.flag("/BootOptionEnabled") == Some(false)) {
        return None;
    }
    let text = |pointer: &str| option.and_then(|option| option.text(pointer)).unwrap_or("");
    let name = text("/DisplayName");
    let by_text = || kind(&[text("/UefiDevicePath"), name, reference]);
    let printable = |text: &str| -> String {
        let chars = text.chars().filter(|c| !c.is_control());
        chars.take(NAME_LIMIT).collect()
    };
    Some(BootOrderEntry {
        reference: printable(reference),
        name: printable(if name.is_empty() { reference } else { name }),
        kind: kind_of_alias(text("/Alias")).unwrap_or_else(by_text),
    })
}

impl Bmc {
    /// The boot order; empty where the BMC does not show it.
    pub async fn boot_order(&mut self) -> Result<BootOrder, BmcError> {
        let system = self.read_system().await?;
        let mut references = system.texts("/Boot/BootOrder").unwrap_or_default();
        references.truncate(ENTRY_LIMIT);
        let mut options = Vec::new();
        let collection = system.link("/Boot/BootOptions")?;
        if let Some(collection) = collection.filter(|_| !references.is_empty()) {
            let members = match self.session.members(&collection).await {
                Err(BmcError::NotFound { .. }) => Vec::new(),
                members => members?,
            };
            for member in members.iter().take(ENTRY_LIMIT) {
                options.push(self.session.get(member).await?);
            }
        }
        let entries = references.iter().filter_map(|it| entry(it, &options));
        Ok(BootOrder {
            entries: entries.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::document::tests::document;
    use super::*;

    #[test]
    fn kinds_are_read_from_options_and_names() {
        use BootSourceKind::{Cd, Disk, Network, Other};
        for (option, reference, expected) in [
            (json!({ "Alias": "Pxe" }), "Boot0001", Network),
            (
                json!({ "UefiDevicePath": "PciRoot(0x0)/Pci(0x1,0x0)/CDROM(0x1)" }),
                "Boot0001",
                Cd,
            ),
            (
                json!({ "UefiDevicePath": "HD(1,GPT,x)/\\EFI\\redhat\\shimx64.efi", "DisplayName": "Red Hat" }),
                "Boot0001",
                Disk,
            ),
            (
                json!({ "UefiDevicePath": "MAC(0c42,0x1)/IPv4(0.0.0.0)" }),
                "Boot0001",
                Network,
            ),
            (json!({}), "NIC.Slot.3-1-1", Network),
            (json!({}), "HardDisk.List.1-1", Disk),
            (json!({}), "Optical.iDRACVirtual.1-1", Cd),
            (json!({ "DisplayName": "UEFI Shell" }), "Boot0001", Other),
        ] {
            let mut body = option.clone();
            body["BootOptionReference"] = json!(reference);
            let read = entry(reference, &[document(body)]).unwrap();
            assert_eq!(read.kind, expected, "{option} {reference}");
        }
    }

    #[test]
    fn only_a_first_entry_is_before_the_disk() {
        use BootSourceKind::{Cd, Disk, Network, Other};
        let order = |kinds: &[BootSourceKind]| BootOrder {
            entries: kinds
                .iter()
                .map(|kind| BootOrderEntry {
                    reference: "a".to_owned(),
                    name: "a".to_owned(),
                    kind: *kind,
                })
                .collect(),
        };
        assert!(order(&[Cd, Disk]).before_disk().is_some());
        assert!(order(&[Network, Disk]).before_disk().is_some());
        assert!(order(&[Disk, Cd]).before_disk().is_none());
        assert!(order(&[Other, Cd]).before_disk().is_none());
        assert!(order(&[]).before_disk().is_none());
    }

    #[test]
    fn names_are_printable_and_short() {
        let name = format!("\u{1b}[31m{}", "x".repeat(200));
        let option = document(json!({ "BootOptionReference": "Boot0001", "DisplayName": name }));
        let read = entry("Boot0001", &[option]).unwrap();
        assert_eq!(read.name, format!("[31m{}", "x".repeat(96)));
    }

    #[test]
    fn disabled_options_are_not_booted() {
        let option =
            document(json!({ "BootOptionReference": "Boot0001", "BootOptionEnabled": false }));
        assert_eq!(entry("Boot0001", &[option]), None);
    }
}
