//! Hardware of a simulated machine, and its inventory.

use std::fmt;
use std::net::Ipv4Addr;

use md5::{Digest, Md5};
use serde_json::{Value, json};
use uuid::Uuid;

const GIB: u64 = 1 << 30;

/// Intended role of a machine: it sets size and name, and is not sent to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Sized for the control plane.
    Master,
    /// Sized for two-node control planes' third member.
    Arbiter,
    /// Sized for workloads.
    Worker,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Master => "master",
            Self::Arbiter => "arbiter",
            Self::Worker => "worker",
        })
    }
}

/// Defect of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weakness {
    /// 4 GiB of memory.
    Ram,
    /// One processor.
    Cpu,
    /// A 20 GB disk.
    Disk,
    /// A disk that syncs slowly.
    Speed,
    /// No time source answers.
    Ntp,
    /// Cannot pull any image.
    Images,
    /// Other hosts do not answer it.
    Network,
}

/// One machine.
#[derive(Debug, Clone)]
pub struct Hardware {
    /// Position among all machines.
    pub index: usize,
    /// Name that its DHCP server gives it.
    pub hostname: String,
    /// Id that the agent derives from the serial number of the board.
    pub host_id: Uuid,
    /// Serial number of the system.
    pub serial: String,
    /// Hardware address of the connected interface.
    pub mac: String,
    /// Hardware address of the interface without a cable.
    pub spare_mac: String,
    /// Address of the connected interface.
    pub ip: Ipv4Addr,
    /// Length of the network's prefix.
    pub prefix: u8,
    /// Address of the router, which is also the time source.
    pub gateway: Ipv4Addr,
    /// Processors.
    pub cpus: u32,
    /// Memory, in bytes.
    pub ram_bytes: u64,
    /// Size of the installation disk, in bytes.
    pub disk_bytes: u64,
    /// Its defects.
    pub weaknesses: Vec<Weakness>,
}

/// Network of a machine.
pub(crate) struct NetworkPlacement {
    pub(crate) index: usize,
    pub(crate) ip: Ipv4Addr,
    pub(crate) prefix: u8,
    pub(crate) gateway: Ipv4Addr,
}

impl Hardware {
    /// Builds the machine `hostname`; the same seed always gives the same serial numbers.
    pub(crate) fn new(
        seed: &str,
        hostname: String,
        role: Role,
        place: &NetworkPlacement,
        weaknesses: Vec<Weakness>,
    ) -> Self {
        let digest = |what: &str| -> [u8; 16] {
            Md5::digest(format!("{seed}/{}/{what}", place.index)).into()
        };
        let mac = |what: &str| {
            let d = digest(what);
            format!("52:54:00:{:02x}:{:02x}:{:02x}", d[0], d[1], d[2])
        };
        let serial = hex(digest("serial"))[..10].to_uppercase();
        let is_weak = |weakness| weaknesses.contains(&weakness);
        let (cpus, ram_gib) = match role {
            Role::Master => (8, 24),
            Role::Arbiter => (4, 12),
            Role::Worker => (16, 48),
        };
        Self {
            index: place.index,
            hostname,
            host_id: Uuid::from_bytes(Md5::digest(&serial).into()),
            mac: mac("nic0"),
            spare_mac: mac("nic1"),
            serial,
            ip: place.ip,
            prefix: place.prefix,
            gateway: place.gateway,
            cpus: if is_weak(Weakness::Cpu) { 1 } else { cpus },
            ram_bytes: if is_weak(Weakness::Ram) { 4 } else { ram_gib } * GIB,
            disk_bytes: if is_weak(Weakness::Disk) {
                20_000_000_000
            } else {
                240_057_409_536
            },
            weaknesses,
        }
    }

    /// Whether it has this defect.
    pub fn has(&self, weakness: Weakness) -> bool {
        self.weaknesses.contains(&weakness)
    }

    /// The stable name of the installation disk.
    pub fn disk_by_id(&self) -> String {
        format!("/dev/disk/by-id/wwn-{}", self.wwn())
    }

    fn wwn(&self) -> String {
        let digest: [u8; 16] = Md5::digest(format!("{}/wwn", self.serial)).into();
        format!("0x50{}", &hex(digest)[..14])
    }

    /// The inventory as the agent reports it.
    pub fn inventory(&self) -> Value {
        json!({
            "hostname": self.hostname,
            "bmc_address": "0.0.0.0",
            "bmc_v6address": "::/0",
            "boot": {
                "current_boot_mode": "uefi",
                "device_type": "ephemeral",
                "secure_boot_state": "Disabled",
                "command_line": "BOOT_IMAGE=/images/pxeboot/vmlinuz coreos.liveiso=rhcos-418 ignition.firstboot ignition.platform.id=metal\n",
            },
            "cpu": self.cpu(),
            "disks": [self.disk(), media()],
            "gpus": [{ "address": "0000:00:01.0", "device_id": "1050", "name": "Virtio 1.0 GPU",
                "vendor": "Red Hat, Inc.", "vendor_id": "1af4" }],
            "interfaces": [
                interface("enp1s0", &self.mac, Some(format!("{}/{}", self.ip, self.prefix))),
                interface("enp2s0", &self.spare_mac, None),
            ],
            "memory": { "physical_bytes": self.ram_bytes, "physical_bytes_method": "dmidecode",
                "usable_bytes": self.ram_bytes - self.ram_bytes / 40 },
            "routes": self.routes(),
            "system_vendor": { "manufacturer": "Contoso", "product_name": "Edge R240", "serial_number": self.serial },
            "tpm_version": "2.0",
        })
    }

    fn cpu(&self) -> Value {
        json!({
            "architecture": "x86_64",
            "count": self.cpus,
            "frequency": 2900.0,
            "model_name": "Intel(R) Xeon(R) Gold 6226R CPU @ 2.90GHz",
            "flags": ["fpu", "vme", "de", "pse", "tsc", "msr", "pae", "mce", "cx8", "apic", "sep", "mtrr", "pge", "mca",
                "cmov", "pat", "pse36", "clflush", "mmx", "fxsr", "sse", "sse2", "ht", "syscall", "nx", "pdpe1gb", "rdtscp",
                "lm", "constant_tsc", "rep_good", "nopl", "xtopology", "cpuid", "pni", "pclmulqdq", "vmx", "ssse3", "fma",
                "cx16", "pcid", "sse4_1", "sse4_2", "x2apic", "movbe", "popcnt", "aes", "xsave", "avx", "f16c", "rdrand",
                "hypervisor", "lahf_lm", "abm", "3dnowprefetch", "avx2", "bmi1", "bmi2", "avx512f", "avx512dq"],
        })
    }

    fn disk(&self) -> Value {
        json!({
            "id": self.disk_by_id(),
            "by_id": self.disk_by_id(),
            "by_path": "/dev/disk/by-path/pci-0000:00:1f.2-ata-1",
            "drive_type": "SSD",
            "has_uuid": true,
            "hctl": "0:0:0:0",
            "installation_eligibility": { "eligible": true, "not_eligible_reasons": [] },
            "model": "MZ7KH240HAHQ0D3",
            "name": "sda",
            "path": "/dev/sda",
            "serial": format!("S47N{}", self.serial),
            "size_bytes": self.disk_bytes,
            "smart": r#"{"json_format_version":[1,0],"smart_status":{"passed":true},"temperature":{"current":31}}"#,
            "vendor": "ATA",
            "wwn": self.wwn(),
        })
    }

    fn routes(&self) -> Value {
        let network = ipnet::Ipv4Net::new(self.ip, self.prefix)
            .map_or_else(|_| String::new(), |net| net.trunc().to_string());
        json!([
            { "destination": "0.0.0.0", "family": 2, "gateway": self.gateway.to_string(), "interface": "enp1s0", "metric": 100 },
            { "destination": network.split('/').next(), "family": 2, "interface": "enp1s0", "metric": 100 },
            { "destination": "::1", "family": 10, "interface": "lo", "metric": 256 },
        ])
    }
}

fn interface(name: &str, mac: &str, address: Option<String>) -> Value {
    let has_carrier = address.is_some();
    let flags: &[&str] = if has_carrier {
        &["up", "broadcast", "multicast", "running"]
    } else {
        &["up", "broadcast", "multicast"]
    };
    json!({
        "name": name,
        "mac_address": mac,
        "ipv4_addresses": address.into_iter().collect::<Vec<_>>(),
        "ipv6_addresses": [],
        "flags": flags,
        "has_carrier": has_carrier,
        "mtu": 1500,
        "product": "0x1572",
        "speed_mbps": if has_carrier { 10_000 } else { -1 },
        "type": "physical",
        "vendor": "0x8086",
    })
}

fn hex(digest: [u8; 16]) -> String {
    Uuid::from_bytes(digest).simple().to_string()
}

/// The virtual drive from which the machine booted.
fn media() -> Value {
    json!({
        "id": "/dev/disk/by-path/pci-0000:00:1f.2-ata-2",
        "by_path": "/dev/disk/by-path/pci-0000:00:1f.2-ata-2",
        "bootable": true,
        "drive_type": "ODD",
        "hctl": "1:0:0:0",
        "installation_eligibility": { "not_eligible_reasons": ["Disk is removable", "Disk is too small"] },
        "is_installation_media": true,
        "model": "Virtual CD-ROM",
        "name": "sr0",
        "path": "/dev/sr0",
        "removable": true,
        "size_bytes": 1_154_482_176,
        "vendor": "Contoso",
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn machine(index: usize, role: Role, weaknesses: Vec<Weakness>) -> Hardware {
        let last = u8::try_from(10 + index).unwrap();
        let place = NetworkPlacement {
            index,
            ip: Ipv4Addr::new(192, 168, 126, last),
            prefix: 24,
            gateway: Ipv4Addr::new(192, 168, 126, 1),
        };
        Hardware::new("seed", format!("{role}-{index}"), role, &place, weaknesses)
    }

    #[test]
    fn the_same_seed_gives_the_same_machine() {
        assert_eq!(
            machine(1, Role::Worker, vec![]).inventory(),
            machine(1, Role::Worker, vec![]).inventory()
        );
        assert_ne!(
            machine(1, Role::Worker, vec![]).host_id,
            machine(2, Role::Worker, vec![]).host_id
        );
    }

    #[test]
    fn the_inventory_has_the_members_that_the_service_reads() {
        let inventory = machine(0, Role::Master, vec![]).inventory();
        assert_eq!(
            inventory["interfaces"][0]["ipv4_addresses"][0],
            "192.168.126.10/24"
        );
        assert_eq!(inventory["routes"][1]["destination"], "192.168.126.0");
        assert_eq!(inventory["memory"]["physical_bytes"], 24_u64 << 30);
        assert!(
            inventory["disks"][0]["id"]
                .as_str()
                .unwrap()
                .starts_with("/dev/disk/by-id/wwn-0x50")
        );
    }

    #[test]
    fn weak_machines_are_weak() {
        let inventory = machine(4, Role::Worker, vec![Weakness::Ram, Weakness::Disk]).inventory();
        assert_eq!(inventory["memory"]["physical_bytes"], 4_u64 << 30);
        assert_eq!(inventory["disks"][0]["size_bytes"], 20_000_000_000_u64);
        assert_eq!(inventory["cpu"]["count"], 16);
    }
}
