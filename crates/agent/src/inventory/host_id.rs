//! The id of a host: the same at each boot, with or without its disks.
//!
//! Source: assisted-installer-agent, src/scanners/machine_uuid_scanner.go.

use md5::{Digest as _, Md5};
use model::inventory::Interface;
use uuid::Uuid;

use super::vendor::{UNKNOWN, dmi_text};
use crate::HostFiles;

/// Serial numbers that are none, in lower case.
const NO_SERIAL: [&str; 8] = [
    "none",
    "(none)",
    "-",
    "unspecified base board serial number",
    "unspecified system serial number",
    "default string",
    "not specified",
    "pca_number.acc",
];
/// UUIDs that machines of a kind have in common.
const SHARED_UUIDS: [Uuid; 2] = [
    Uuid::nil(),
    Uuid::from_u128(0x0300_0200_0400_0500_0006_0007_0008_0009),
];
/// The id without any identification. Two such hosts are one for the service.
const FALLBACK: Uuid = Uuid::from_u128(0xdead_dead_dead_dead_dead_dead_dead_dead);

/// The id: of the board's serial number, else the product's UUID, else of the lowest hardware address.
pub(crate) fn host_id(files: &HostFiles, interfaces: &[Interface]) -> Uuid {
    let serial = dmi_text(files, "board_serial").filter(|serial| {
        let serial = serial.to_lowercase();
        serial != UNKNOWN && !NO_SERIAL.contains(&serial.as_str())
    });
    if let Some(serial) = serial {
        return uuid_of(&serial);
    }
    let product = dmi_text(files, "product_uuid").and_then(|text| text.parse::<Uuid>().ok());
    if let Some(product) = product.filter(|uuid| !SHARED_UUIDS.contains(uuid)) {
        return product;
    }
    let addresses = interfaces
        .iter()
        .map(|interface| interface.mac_address.as_str());
    match addresses.filter(|address| !address.is_empty()).min() {
        Some(address) => uuid_of(address),
        None => FALLBACK,
    }
}

fn uuid_of(text: &str) -> Uuid {
    Uuid::from_bytes(Md5::digest(text).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_best_identification_wins() {
        let root = tempfile::tempdir().unwrap();
        let files = HostFiles::below(root.path());
        assert_eq!(host_id(&files, &[]), FALLBACK);
        let interface = |mac: &str| Interface {
            mac_address: mac.to_owned(),
            ..Interface::default()
        };
        let interfaces = [
            interface("52:54:00:00:00:02"),
            interface(""),
            interface("52:54:00:00:00:01"),
        ];
        // md5 of 52:54:00:00:00:01
        let by_address = host_id(&files, &interfaces);
        assert_eq!(by_address, uuid_of("52:54:00:00:00:01"));
        let folder = root.path().join("sys/class/dmi/id");
        fs::create_dir_all(&folder).unwrap();
        let product = |text: &str| fs::write(folder.join("product_uuid"), text).unwrap();
        product("03000200-0400-0500-0006-000700080009\n");
        assert_eq!(host_id(&files, &interfaces), by_address);
        product("4C4C4544-0042-4710-8031-B4C04F463233\n");
        let expected = "4c4c4544-0042-4710-8031-b4c04f463233";
        assert_eq!(host_id(&files, &interfaces).to_string(), expected);
        let board = |text: &str| fs::write(folder.join("board_serial"), text).unwrap();
        board("Default String\n");
        assert_eq!(host_id(&files, &interfaces).to_string(), expected);
        board("abc\n");
        let of_board = "90015098-3cd2-4fb0-d696-3f7d28e17f72";
        assert_eq!(host_id(&files, &interfaces).to_string(), of_board);
    }
}
