//! One block device, by the files of the kernel and the database of udev.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;

use model::inventory::DriveType;

use crate::HostFiles;

/// Units: bytes. Source: `/sys/block/*/size` counts sectors of this size on every disk.
const SECTOR: i64 = 512;
const BY_ID: &str = "/dev/disk/by-id";

/// Storage controllers. Source: the library ghw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Controller {
    Scsi,
    Ide,
    Virtio,
    Nvme,
    Mmc,
}

/// Beginnings of device names with their types; a disk that does not rotate is an SSD.
const CLASSES: [(&str, DriveType, Controller); 8] = [
    ("fd", DriveType::FDD, Controller::Scsi),
    ("sd", DriveType::HDD, Controller::Scsi),
    ("hd", DriveType::HDD, Controller::Ide),
    ("vd", DriveType::HDD, Controller::Virtio),
    ("xvd", DriveType::HDD, Controller::Scsi),
    ("nvme", DriveType::SSD, Controller::Nvme),
    ("mmc", DriveType::SSD, Controller::Mmc),
    ("sr", DriveType::ODD, Controller::Scsi),
];

pub(super) struct BlockDevice<'a> {
    files: &'a HostFiles,
    pub(super) name: &'a str,
    udev: HashMap<String, String>,
}

impl<'a> BlockDevice<'a> {
    pub(super) fn new(files: &'a HostFiles, name: &'a str) -> Self {
        let number = files.text(&format!("/sys/block/{name}/dev"));
        let udev = properties(files, &number.unwrap_or_default());
        Self { files, name, udev }
    }

    fn file(&self, path: &str) -> Option<String> {
        let text = self.files.text(&format!("/sys/block/{}/{path}", self.name));
        text.filter(|text| !text.is_empty())
    }

    /// `major:minor`.
    pub(super) fn number(&self) -> String {
        self.file("dev").unwrap_or_default()
    }

    /// A property in udev's database of the device with this `major:minor`.
    pub(super) fn property(&self, number: &str, name: &str) -> Option<String> {
        properties(self.files, number).remove(name)
    }

    pub(super) fn path(&self) -> String {
        format!("/dev/{}", self.name)
    }

    pub(super) fn class(&self) -> Option<(DriveType, Controller)> {
        let (_, drive_type, controller) = CLASSES
            .iter()
            .find(|(prefix, ..)| self.name.starts_with(prefix))?;
        let rotates = self.file("queue/rotational").as_deref() != Some("0");
        match drive_type {
            DriveType::HDD if !rotates => Some((DriveType::SSD, *controller)),
            _ => Some((*drive_type, *controller)),
        }
    }

    pub(super) fn is_hidden(&self) -> bool {
        self.file("hidden").as_deref() == Some("1")
    }

    pub(super) fn is_mapped(&self) -> bool {
        self.name.starts_with("dm-")
    }

    pub(super) fn mapped_name(&self) -> Option<String> {
        self.file("dm/name")
    }

    pub(super) fn is_multipath(&self) -> bool {
        self.file("dm/uuid")
            .is_some_and(|uuid| uuid.starts_with("mpath-"))
    }

    pub(super) fn is_logical_volume(&self) -> bool {
        self.file("dm/uuid")
            .is_some_and(|uuid| uuid.starts_with("LVM-"))
    }

    /// Disks of mainframes. Source: the kernel's driver dasd.
    pub(super) fn dasd_type(&self) -> DriveType {
        match self.file("device/discipline").as_deref() {
            Some("ECKD") if self.file("device/ese").as_deref() == Some("1") => DriveType::ECKDESE,
            Some("ECKD") => DriveType::ECKD,
            Some("FBA") => DriveType::FBA,
            _ => DriveType::Unknown,
        }
    }

    /// Units: bytes.
    pub(super) fn size(&self) -> i64 {
        let sectors = self.file("size").and_then(|text| text.parse::<i64>().ok());
        sectors.unwrap_or(0).saturating_mul(SECTOR)
    }

    pub(super) fn is_removable(&self) -> bool {
        self.file("removable").as_deref() == Some("1")
    }

    pub(super) fn vendor(&self) -> Option<String> {
        self.file("device/vendor")
    }

    pub(super) fn model(&self) -> Option<String> {
        self.udev
            .get("ID_MODEL")
            .cloned()
            .or_else(|| self.file("device/model"))
    }

    pub(super) fn serial(&self) -> Option<String> {
        let known = ["ID_SERIAL_SHORT", "ID_SERIAL"]
            .iter()
            .find_map(|name| self.udev.get(*name));
        let own = || self.file("serial").or_else(|| self.file("device/serial"));
        known.cloned().or_else(own)
    }

    /// The world-wide name.
    pub(super) fn wwn(&self) -> Option<String> {
        let names = ["ID_WWN_WITH_EXTENSION", "ID_WWN"];
        names.iter().find_map(|name| self.udev.get(*name)).cloned()
    }

    pub(super) fn bus_path(&self) -> Option<&str> {
        self.udev.get("ID_PATH").map(String::as_str)
    }

    pub(super) fn by_path(&self) -> Option<String> {
        let path = format!("/dev/disk/by-path/{}", self.bus_path()?);
        self.files.exists(&path).then_some(path)
    }

    /// The stable name that installations use, from the world-wide name.
    pub(super) fn by_id(&self) -> Option<String> {
        let path = self.path();
        self.files
            .names(BY_ID)
            .into_iter()
            .rev()
            .filter(|name| name.starts_with("wwn-") || name.starts_with("nvme-eui"))
            .map(|name| format!("{BY_ID}/{name}"))
            .find(|link| self.files.target(link).as_ref() == Some(&path))
    }

    /// The address of a SCSI device, `host:channel:target:lun`.
    pub(super) fn hctl(&self) -> Option<String> {
        let folder = format!("/sys/block/{}/device/scsi_device", self.name);
        self.files.names(&folder).into_iter().next()
    }

    /// Whether the device identifies itself, which vSphere has to be set up for.
    pub(super) fn has_uuid(&self) -> bool {
        let folder = format!("/sys/block/{}", self.name);
        let page = self.files.bytes(&format!("{folder}/device/vpd_pg83"));
        // Four bytes are the header of an empty page.
        page.is_some_and(|page| page.len() > 4)
            || (self.name.starts_with("nvme") && self.file("wwid").is_some())
    }

    /// Whether the first sector ends as one of a boot loader or of a partition table does.
    pub(super) fn has_boot_sector(&self) -> bool {
        let mut sector = [0; 512];
        let file = File::open(self.files.path(&self.path()));
        let read = file.and_then(|mut file| file.read_exact(&mut sector));
        read.is_ok() && sector.ends_with(&[0x55, 0xaa])
    }

    pub(super) fn holders(&self) -> Vec<String> {
        self.files
            .names(&format!("/sys/block/{}/holders", self.name))
    }

    /// Partitions: name and `major:minor`.
    pub(super) fn partitions(&self) -> Vec<(String, String)> {
        let folder = format!("/sys/block/{}", self.name);
        let number = |name: String| {
            let number = self.files.text(&format!("{folder}/{name}/dev"))?;
            let is_partition = self.files.exists(&format!("{folder}/{name}/partition"));
            is_partition.then_some((name, number))
        };
        self.files
            .names(&folder)
            .into_iter()
            .filter_map(number)
            .collect()
    }

    /// The folder of the device, with the way to it: `/sys/devices/…`.
    pub(super) fn device_path(&self) -> Option<String> {
        self.files.target(&format!("/sys/block/{}", self.name))
    }

    pub(super) fn files(&self) -> &HostFiles {
        self.files
    }
}

/// Properties of a block device in udev's database: lines `E:NAME=value`.
fn properties(files: &HostFiles, number: &str) -> HashMap<String, String> {
    let text = files.text(&format!("/run/udev/data/b{number}"));
    let property = |line: &str| {
        let (name, value) = line.strip_prefix("E:")?.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    };
    text.unwrap_or_default()
        .lines()
        .filter_map(property)
        .collect()
}
