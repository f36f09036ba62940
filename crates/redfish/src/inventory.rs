//! Inventory of a host by its BMC: identity, power, boot source, NICs, disks, sizes.

use serde::Serialize;

use super::bmc::Bmc;
use super::boot_override::BootOverride;
use super::disks::BmcDisk;
use super::document::{RedfishDocument, whole};
use super::error::BmcError;
use super::power::PowerState;

/// NICs of one host that are read.
const NIC_LIMIT: usize = 32;

/// A host as its BMC sees it. Missing values were not sent, or are no values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BmcInventory {
    /// Address of the system.
    pub endpoint: String,
    /// Family of the BMC.
    pub family: &'static str,
    /// Manufacturer of the system.
    pub manufacturer: Option<String>,
    /// Model of the system.
    pub model: Option<String>,
    /// Serial number of the system.
    pub serial: Option<String>,
    /// UUID of the system, in lower case.
    pub uuid: Option<String>,
    /// Power state.
    pub power: PowerState,
    /// Boot override.
    pub boot: BootOverride,
    /// NICs.
    pub nics: Vec<BmcNic>,
    /// Disks.
    pub disks: Vec<BmcDisk>,
    /// Memory. Units: GiB, rounded down.
    pub memory_gib: Option<u64>,
    /// Number of processors.
    pub processors: Option<u64>,
    /// Model of the processors.
    pub processor_model: Option<String>,
    /// Version of the system's firmware.
    pub bios_version: Option<String>,
    /// Model of the BMC.
    pub bmc_model: Option<String>,
    /// Version of the BMC's firmware.
    pub bmc_firmware: Option<String>,
    /// Whether the last start was one with UEFI Secure Boot.
    pub secure_boot: Option<bool>,
    /// Whether the BMC has virtual media.
    pub has_virtual_media: bool,
    /// Whether the BMC names UEFI HTTP boot among its boot sources.
    pub has_uefi_http: bool,
}

/// A NIC of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BmcNic {
    /// Its id at the BMC.
    pub id: String,
    /// MAC address, in lower case with colons.
    pub mac: String,
    /// Units: Mbit/s.
    pub speed_mbps: Option<u64>,
    /// `LinkUp`, `NoLink`, `LinkDown`.
    pub link: Option<String>,
}

impl BmcNic {
    /// The NIC in a resource; none without a MAC address.
    fn of(document: &RedfishDocument) -> Option<Self> {
        let mac = document
            .text("/MACAddress")
            .or(document.text("/PermanentMACAddress"))?;
        Some(Self {
            id: document
                .text("/Id")
                .unwrap_or(document.path.name())
                .to_owned(),
            mac: normal_mac(mac)?,
            speed_mbps: document.quantity("/SpeedMbps").and_then(whole),
            link: document.owned_text("/LinkStatus"),
        })
    }
}

/// A MAC address of any spelling; none if it is none, or all zeros.
fn normal_mac(text: &str) -> Option<String> {
    let digits: String = text
        .chars()
        .filter(|c| !matches!(c, ':' | '-' | '.'))
        .collect();
    let is_hex = digits.chars().all(|c| c.is_ascii_hexdigit());
    if !is_hex || digits.len() != 12 || digits.chars().all(|c| c == '0') {
        return None;
    }
    let digits = digits.to_lowercase();
    let pairs = (0..6).map(|at| &digits[2 * at..2 * at + 2]);
    Some(pairs.collect::<Vec<_>>().join(":"))
}

impl Bmc {
    /// Reads the inventory.
    pub async fn inventory(&mut self) -> Result<BmcInventory, BmcError> {
        let system = self.read_system().await?;
        let nics = self.nics(&system).await?;
        let disks = self.disks(&system).await?;
        let secure_boot = self.secure_boot(&system).await?;
        let boot = BootOverride::of(&system);
        let manager = |pointer: &str| self.manager.as_ref().and_then(|it| it.named_text(pointer));
        let links = [Some(&system), self.manager.as_ref()];
        let has_media = |it: &RedfishDocument| !it.at("/VirtualMedia/@odata.id").is_null();
        Ok(BmcInventory {
            endpoint: self.endpoint.clone(),
            family: self.quirks.name,
            manufacturer: system.named_text("/Manufacturer"),
            model: system.named_text("/Model"),
            serial: system.named_text("/SerialNumber"),
            uuid: system.text("/UUID").map(str::to_lowercase),
            power: PowerState::of(&system),
            nics,
            disks,
            memory_gib: system
                .quantity("/MemorySummary/TotalSystemMemoryGiB")
                .and_then(whole),
            processors: system.quantity("/ProcessorSummary/Count").and_then(whole),
            processor_model: system.named_text("/ProcessorSummary/Model"),
            bios_version: system.named_text("/BiosVersion"),
            bmc_model: manager("/Model"),
            bmc_firmware: manager("/FirmwareVersion"),
            secure_boot,
            has_virtual_media: links.into_iter().flatten().any(has_media),
            has_uefi_http: boot.targets.iter().any(|it| it == "UefiHttp"),
            boot,
        })
    }

    /// Source: DSP0268 SecureBoot.
    async fn secure_boot(&mut self, system: &RedfishDocument) -> Result<Option<bool>, BmcError> {
        let Some(path) = system.link("/SecureBoot")? else {
            return Ok(None);
        };
        // Hosts that start in legacy mode have none.
        let found = self.session.find(&path).await?;
        Ok(
            found.and_then(|document| match document.text("/SecureBootCurrentBoot") {
                Some("Enabled") => Some(true),
                Some("Disabled") => Some(false),
                _ => document.flag("/SecureBootEnable"),
            }),
        )
    }

    async fn nics(&mut self, system: &RedfishDocument) -> Result<Vec<BmcNic>, BmcError> {
        let Some(collection) = system.link("/EthernetInterfaces")? else {
            return Ok(Vec::new());
        };
        let members = match self.session.members(&collection).await {
            Err(BmcError::NotFound { .. }) => return Ok(Vec::new()),
            members => members?,
        };
        let mut nics = Vec::new();
        for member in members.iter().take(NIC_LIMIT) {
            match self.session.get(member).await {
                Ok(document) => nics.extend(BmcNic::of(&document)),
                // Of a card that was taken out.
                Err(BmcError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(nics)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spellings_of_mac_addresses_are_one() {
        for text in [
            "AA:BB:CC:00:11:22",
            "aa-bb-cc-00-11-22",
            "aabb.cc00.1122",
            "AABBCC001122",
        ] {
            assert_eq!(
                normal_mac(text).as_deref(),
                Some("aa:bb:cc:00:11:22"),
                "{text}"
            );
        }
        for text in [
            "",
            "00:00:00:00:00:00",
            "not available",
            "aa:bb:cc:00:11",
            "ää:bb:cc:00:11:22",
        ] {
            assert_eq!(normal_mac(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_mac_address_or_none(text in ".{0,20}") {
            prop_assert!(normal_mac(&text).is_none_or(|mac| mac.len() == 17));
        }
    }
}
