use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::*;

/// The kernel's and udev's files of a host with the disks of a test.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.0.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn link(&self, link: &str, target: &str) {
        let link = self.0.path().join(link.trim_start_matches('/'));
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(self.0.path().join(target.trim_start_matches('/')), link).unwrap();
    }

    /// A disk below `device`; properties are those of udev.
    fn disk(&self, device: &str, name: &str, number: &str, properties: &[&str]) {
        let folder = format!("{device}/block/{name}");
        self.write(&format!("{folder}/dev"), number);
        self.write(&format!("{folder}/size"), "2048\n");
        self.write(&format!("{folder}/queue/rotational"), "0\n");
        self.link(&format!("/sys/block/{name}"), &folder);
        self.link(&format!("{folder}/device"), device);
        let properties: Vec<String> = properties
            .iter()
            .map(|text| format!("E:{text}\n"))
            .collect();
        self.write(&format!("/run/udev/data/b{number}"), properties.concat());
        self.write(&format!("/dev/{name}"), [0; 512]);
    }

    fn disks(&self, mounts: &str) -> Vec<Disk> {
        disks(&HostFiles::below(self.0.path()), &Mounts::parse(mounts))
    }

    fn root(&self) -> &Path {
        self.0.path()
    }
}

#[test]
fn a_disk_is_identified() {
    let machine = Machine::new();
    let properties = [
        "ID_MODEL=PERC_H730",
        "ID_SERIAL=36141877",
        "ID_SERIAL_SHORT=6141877",
        "ID_WWN=0x6141877",
        "ID_PATH=pci-0000:03:00.0-scsi-0:2:0:0",
    ];
    machine.disk("/sys/devices/pci0/0:2:0:0", "sda", "8:0", &properties);
    machine.write("/sys/devices/pci0/0:2:0:0/vendor", "DELL    \n");
    machine.write("/sys/devices/pci0/0:2:0:0/scsi_device/0:2:0:0/x", "");
    machine.write(
        "/sys/devices/pci0/0:2:0:0/vpd_pg83",
        [0, 0x83, 0, 4, 1, 2, 3, 4],
    );
    machine.link("/dev/disk/by-id/wwn-0x6141877", "/dev/sda");
    machine.link(
        "/dev/disk/by-path/pci-0000:03:00.0-scsi-0:2:0:0",
        "/dev/sda",
    );
    let mut sector = [0; 512];
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    machine.write("/dev/sda", sector);
    let [disk] = &machine.disks("")[..] else {
        panic!("one disk");
    };
    insta::assert_json_snapshot!(disk);
}

#[test]
fn mounted_disks_are_not_overwritten() {
    let machine = Machine::new();
    for (name, number) in [("sda", "8:0"), ("sdb", "8:16"), ("sdc", "8:32")] {
        machine.disk(&format!("/sys/devices/{name}"), name, number, &[]);
    }
    machine.write("/sys/devices/sda/block/sda/sda1/dev", "8:1");
    machine.write("/sys/devices/sda/block/sda/sda1/partition", "1");
    let disks = machine.disks(
        "1 0 8:1 / /run/media/iso ro - iso9660 /dev/sda1 ro\n2 0 8:16 / /mnt rw - xfs /dev/sdb rw\n",
    );
    let reasons = |index: usize| &disks[index].installation_eligibility.not_eligible_reasons;
    assert!(disks[0].is_installation_media && reasons(0)[0].contains("ISO installation media"));
    assert!(!disks[1].is_installation_media);
    assert_eq!(reasons(1), &["Disk has partition 'sdb' mounted on '/mnt'"]);
    assert!(disks[2].installation_eligibility.eligible);
}

#[test]
fn devices_that_are_no_disks_are_left_out() {
    let machine = Machine::new();
    for (name, number) in [
        ("loop0", "7:0"),
        ("zram0", "252:0"),
        ("dm-0", "253:0"),
        ("dm-1", "253:1"),
    ] {
        machine.disk(&format!("/sys/devices/virtual/{name}"), name, number, &[]);
    }
    machine.write(
        "/sys/devices/virtual/dm-1/block/dm-1/dm/uuid",
        "mpath-36141877\n",
    );
    machine.disk("/sys/devices/ata/sr0", "sr0", "11:0", &[]);
    let disks = machine.disks("");
    let kinds: Vec<_> = disks
        .iter()
        .map(|disk| (disk.name.as_str(), disk.known_type()))
        .collect();
    assert_eq!(
        kinds,
        [("dm-1", DriveType::Multipath), ("sr0", DriveType::ODD)]
    );
    assert!(disks[1].is_installation_media);
}

#[test]
fn an_iscsi_disk_needs_the_firmware() {
    let machine = Machine::new();
    let device = "/sys/devices/platform/host2/session1/target2:0:0/2:0:0:1";
    let path = ["ID_PATH=ip-10.0.0.1:3260-iscsi-iqn.a-lun-1"];
    machine.disk(device, "sda", "8:0", &path);
    machine.write(&format!("{device}/state"), "running\n");
    machine.write("/sys/class/iscsi_session/session1/targetname", "iqn.a\n");
    machine.write("/sys/class/iscsi_host/host2/ipaddress", "10.0.0.9\n");
    let disk = || machine.disks("").remove(0);
    let reasons = disk().installation_eligibility.not_eligible_reasons;
    assert_eq!(reasons, ["iBFT firmware is missing"]);
    assert_eq!(disk().iscsi.unwrap().host_ip_address, "10.0.0.9");
    machine.write("/sys/firmware/ibft/target0/target-name", "iqn.b\n");
    let reasons = disk().installation_eligibility.not_eligible_reasons;
    assert_eq!(reasons, ["iSCSI disk is missing from iBFT"]);
    machine.write("/sys/firmware/ibft/target0/target-name", "iqn.a\n");
    assert!(disk().installation_eligibility.eligible);
    assert!(machine.root().exists());
}

#[test]
fn a_preinstalled_system_is_its_only_disk() {
    let machine = Machine::new();
    machine.disk("/sys/devices/a", "sda", "8:0", &[]);
    machine.disk("/sys/devices/virtual/b", "dm-0", "253:0", &[]);
    machine.write("/sys/devices/virtual/b/block/dm-0/dm/name", "agentdata\n");
    let disks = machine.disks("");
    assert_eq!(disks.len(), 1);
    assert_eq!(
        (disks[0].name.as_str(), disks[0].size_bytes),
        ("dm-0", 100 << 30)
    );
}
