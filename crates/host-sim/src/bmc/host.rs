//! The host behind a simulated BMC.

use uuid::Uuid;

use crate::Hardware;
use crate::hardware::Disk;

/// A host as its BMC shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BmcHost {
    /// Name in hooks and logs.
    pub name: String,
    /// Serial number.
    pub serial: String,
    /// UUID of the system.
    pub uuid: Uuid,
    /// MAC addresses of its NICs.
    pub macs: Vec<String>,
    /// Memory. Units: GiB.
    pub memory_gib: u64,
    /// Processors.
    pub processors: u64,
    /// Disks.
    pub disks: Vec<Disk>,
}

impl BmcHost {
    /// A host with made-up values, by its number.
    pub fn numbered(number: usize) -> Self {
        let [.., a, b, c] = (number as u64).to_be_bytes();
        let mac = |nic: u8| format!("52:54:{nic:02x}:{a:02x}:{b:02x}:{c:02x}");
        Self {
            name: format!("host-{number}"),
            serial: format!("SIM{number:06}"),
            uuid: Uuid::from_u128(0x5eed_0000_0000_4000_8000_0000_0000_0000 + number as u128),
            macs: vec![mac(1), mac(2)],
            memory_gib: 128,
            processors: 2,
            disks: vec![disk(number, 0, false), disk(number, 1, true)],
        }
    }

    /// The host of a simulated machine.
    pub fn of(hardware: &Hardware) -> Self {
        Self {
            name: hardware.hostname.clone(),
            serial: hardware.serial.clone(),
            uuid: hardware.host_id,
            macs: hardware.nics.iter().map(|nic| nic.mac.clone()).collect(),
            memory_gib: hardware.ram_bytes >> 30,
            processors: u64::from(hardware.cpus),
            disks: hardware.disks.clone(),
        }
    }
}

/// A disk with made-up values.
fn disk(number: usize, slot: usize, rotational: bool) -> Disk {
    Disk {
        path: format!("/dev/disk{slot}"),
        size_bytes: if rotational {
            4_000_787_030_016
        } else {
            480_103_981_056
        },
        rotational,
        vendor: "Simulated".to_owned(),
        model: "Simulated Disk".to_owned(),
        serial: format!("SIM{number:06}D{slot}"),
        wwn: format!("5000c500{number:07x}{slot}"),
        hctl: format!("0:0:{slot}:0"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;
    use crate::hardware::tests::machine;

    #[test]
    fn hosts_are_distinct() {
        let (one, other) = (BmcHost::numbered(1), BmcHost::numbered(257));
        assert_ne!(one.uuid, other.uuid);
        assert_ne!(one.macs, other.macs);
        assert_eq!(one.macs[0], "52:54:01:00:00:01");
    }

    #[test]
    fn machines_have_their_own_values() {
        let machine = machine(1, Role::Worker, &[]);
        let host = BmcHost::of(&machine);
        assert_eq!(host.macs[0], machine.nics[0].mac);
        assert_eq!((host.serial, host.name), (machine.serial, machine.hostname));
    }
}
