//! Properties and layout of a live image.

use std::collections::BTreeMap;

/// Properties of an image.
#[derive(Debug, Clone)]
pub struct LiveImageOptions {
    /// First part of the volume id: `rhcos`, `fedora-coreos` or `scos`.
    pub os_name: String,
    /// Version of the operating system.
    pub os_version: String,
    /// `x86_64`, `arm64` (boots by EFI only and has no isolinux), or `s390x` (one boot image with everything).
    pub cpu_architecture: String,
    /// Folder of the boot loader's configuration: `redhat`, `fedora` or `centos`.
    pub vendor: String,
    /// Units: bytes.
    pub vmlinuz_bytes: u64,
    /// Units: bytes, of the root file system inside rootfs.img.
    pub rootfs_bytes: u64,
    /// First bytes of the root file system, in place of made-up ones: a whole squashfs or EROFS image.
    pub rootfs_head: Vec<u8>,
    /// Whether there is a Joliet tree (long names for Windows).
    pub joliet: bool,
    /// Whether the plain tree carries Rock Ridge entries (long names for Unix).
    pub rock_ridge: bool,
    /// Whether there is `coreos/kargs.json` with the kernel argument areas; images before 2023 have none.
    pub kargs_json: bool,
    /// Whether there is `coreos/igninfo.json` with the ignition area; images before 2023 have none.
    pub igninfo_json: bool,
}

impl Default for LiveImageOptions {
    /// Sizes that the image service accepts as genuine.
    fn default() -> Self {
        Self {
            os_name: "rhcos".to_owned(),
            os_version: "418.94.202511191518-0".to_owned(),
            cpu_architecture: "x86_64".to_owned(),
            vendor: "redhat".to_owned(),
            vmlinuz_bytes: 6 * 1024 * 1024,
            rootfs_bytes: 101 * 1024 * 1024,
            rootfs_head: Vec::new(),
            joliet: true,
            rock_ridge: true,
            kargs_json: true,
            igninfo_json: true,
        }
    }
}

impl LiveImageOptions {
    /// Less than a megabyte: for tests that do not check the sizes.
    pub fn small() -> Self {
        Self {
            vmlinuz_bytes: 20_000,
            rootfs_bytes: 200_000,
            ..Self::default()
        }
    }

    /// The volume id, cut as the genuine one.
    pub fn volume_id(&self) -> String {
        let text = format!("{}-{}", self.os_name, self.os_version);
        text.chars().take(32).collect()
    }
}

/// Layout of a written image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Units: bytes, of the whole image.
    pub length: u64,
    /// Start and length of each file by its path, as in `images/ignition.img`. Units: bytes.
    pub files: BTreeMap<String, (u64, u64)>,
}
