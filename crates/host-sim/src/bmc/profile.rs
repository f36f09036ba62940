//! Families of BMCs as rows: paths, names and habits that differ between vendors.

/// A virtual medium of a family.
#[derive(Debug, Clone, Copy)]
pub struct MediumProfile {
    /// Last element of its path.
    pub name: &'static str,
    /// Media types.
    pub types: &'static [&'static str],
    /// Whether it takes images from the network.
    pub takes_images: bool,
}

/// A family of BMCs.
#[derive(Debug, Clone)]
pub struct BmcProfile {
    /// Name on command lines.
    pub name: &'static str,
    /// Vendor in the root of the service; older ones have none.
    pub vendor: Option<&'static str>,
    /// Product in the root of the service.
    pub product: &'static str,
    /// Name of the vendor's extensions in the root.
    pub extension: &'static str,
    /// Manufacturer of the system.
    pub manufacturer: &'static str,
    /// Model of the system.
    pub model: &'static str,
    /// Model of the BMC.
    pub bmc_model: &'static str,
    /// Version of the BMC.
    pub firmware: &'static str,
    /// Id of the system.
    pub system: &'static str,
    /// Id of the manager.
    pub manager: &'static str,
    /// Whether links end with a slash.
    pub ends_with_slash: bool,
    /// Whether it has sessions.
    pub has_sessions: bool,
    /// Whether media are below the system, otherwise below the manager.
    pub has_media_below_system: bool,
    /// Media.
    pub media: &'static [MediumProfile],
    /// Whether media have actions; otherwise their properties are written.
    pub has_media_actions: bool,
    /// Parameters of an insertion that are refused.
    pub refused_parameters: &'static [&'static str],
    /// Parameters of an insertion that are demanded.
    pub demanded_parameters: &'static [&'static str],
    /// Methods of transfer, if it names them.
    pub transfer_methods: &'static [&'static str],
    /// Whether an insertion is a task.
    pub inserts_by_task: bool,
    /// Whether the name of the image stays after an eject.
    pub keeps_image: bool,
    /// Whether the image is shown as a path of Windows.
    pub rewrites_image: bool,
    /// Insertions that fail after an eject.
    pub eject_lasts: u32,
    /// Types of a reset.
    pub reset_types: &'static [&'static str],
    /// Whether the types are named by a resource of their own.
    pub has_action_info: bool,
    /// Power-ons that are refused after a power-off.
    pub off_lasts: u32,
    /// Boot targets that are named.
    pub targets: &'static [&'static str],
    /// The target that boots the virtual CD; none where only the import does.
    pub cd_target: Option<&'static str>,
    /// Whether its remote media can be switched off, as those of AMI.
    pub has_remote_media_setting: bool,
    /// Whether iDRAC's import sets the virtual CD.
    pub has_import: bool,
    /// Whether an override for one boot is one for all.
    pub once_is_continuous: bool,
    /// Whether overrides are written to pending settings.
    pub has_settings: bool,
    /// Whether overrides have to be complete.
    pub demands_full_override: bool,
    /// Whether another target resets the mode to legacy.
    pub resets_mode: bool,
    /// Writes that are refused while the host starts.
    pub start_lasts: u32,
    /// Whether disks are in SimpleStorage alone, as before Storage was standard.
    pub has_simple_storage: bool,
    /// Whether UEFI Secure Boot is on; none without the resource.
    pub secure_boot: Option<bool>,
    /// Whether writes need an entity tag.
    pub needs_if_match: bool,
    /// Whether entity tags are weak.
    pub has_weak_tags: bool,
    /// Whether only the strong form of a tag matches.
    pub matches_strong_only: bool,
    /// Peers or reports that this row follows.
    pub source: &'static str,
}

const CD: MediumProfile = MediumProfile {
    name: "Cd",
    types: &["CD", "DVD"],
    takes_images: true,
};
const FLOPPY: MediumProfile = MediumProfile {
    name: "Floppy",
    types: &["Floppy", "USBStick"],
    takes_images: true,
};

const fn disc(name: &'static str, takes_images: bool) -> MediumProfile {
    MediumProfile {
        name,
        takes_images,
        ..CD
    }
}

const fn stick(name: &'static str) -> MediumProfile {
    MediumProfile { name, ..FLOPPY }
}

/// A BMC that follows the standard.
const STANDARD: BmcProfile = BmcProfile {
    name: "standard",
    vendor: Some("Contoso"),
    product: "Contoso BMC",
    extension: "Contoso",
    manufacturer: "Contoso",
    model: "3500",
    bmc_model: "Joo Janta 200",
    firmware: "1.00",
    system: "1",
    manager: "1",
    ends_with_slash: false,
    has_sessions: true,
    has_media_below_system: true,
    media: &[CD, FLOPPY],
    has_media_actions: true,
    refused_parameters: &[],
    demanded_parameters: &[],
    transfer_methods: &[],
    inserts_by_task: false,
    keeps_image: false,
    rewrites_image: false,
    eject_lasts: 0,
    reset_types: &[
        "On",
        "ForceOff",
        "GracefulShutdown",
        "GracefulRestart",
        "ForceRestart",
        "Nmi",
    ],
    has_action_info: false,
    off_lasts: 0,
    targets: &["None", "Pxe", "Cd", "Hdd", "UefiHttp"],
    cd_target: Some("Cd"),
    has_import: false,
    has_remote_media_setting: false,
    once_is_continuous: false,
    has_settings: false,
    demands_full_override: false,
    resets_mode: false,
    start_lasts: 0,
    has_simple_storage: false,
    secure_boot: Some(true),
    needs_if_match: false,
    has_weak_tags: false,
    matches_strong_only: false,
    source: "DSP0266, DSP0268",
};

/// All families.
pub static BMC_PROFILES: &[BmcProfile] = &[
    STANDARD,
    BmcProfile {
        name: "idrac9",
        vendor: Some("Dell"),
        product: "Integrated Dell Remote Access Controller",
        extension: "Dell",
        manufacturer: "Dell Inc.",
        model: "PowerEdge R650",
        bmc_model: "15G Monolithic",
        firmware: "6.10.30.00",
        system: "System.Embedded.1",
        manager: "iDRAC.Embedded.1",
        has_media_below_system: false,
        media: &[stick("RemovableDisk"), disc("CD", true)],
        rewrites_image: true,
        eject_lasts: 1,
        cd_target: None,
        has_import: true,
        has_weak_tags: true,
        source: "ironic, drac/boot.py and story 2008504; sushy-oem-idrac, manager.py; bmclib, fixtures/dell",
        ..STANDARD
    },
    BmcProfile {
        name: "idrac10",
        vendor: Some("Dell"),
        product: "Integrated Dell Remote Access Controller",
        extension: "Dell",
        manufacturer: "Dell Inc.",
        model: "PowerEdge R670",
        bmc_model: "17G Monolithic",
        firmware: "1.20.50.52",
        system: "System.Embedded.1",
        manager: "iDRAC.Embedded.1",
        media: &[disc("1", true), disc("2", true)],
        eject_lasts: 1,
        off_lasts: 1,
        cd_target: None,
        has_import: true,
        has_settings: true,
        has_weak_tags: true,
        source: "ironic, redfish/power.py; community.general, redfish_utils.py; bmclib, fixtures/dell",
        ..STANDARD
    },
    BmcProfile {
        name: "ilo5",
        vendor: None,
        product: "ProLiant DL360 Gen10",
        extension: "Hpe",
        manufacturer: "HPE",
        model: "ProLiant DL360 Gen10",
        bmc_model: "iLO 5",
        firmware: "iLO 5 v2.72",
        ends_with_slash: true,
        has_media_below_system: false,
        media: &[stick("1"), disc("2", true)],
        reset_types: &["On", "ForceOff", "ForceRestart", "Nmi", "PushPowerButton"],
        targets: &[
            "None",
            "Cd",
            "Hdd",
            "Usb",
            "Utilities",
            "Diags",
            "BiosSetup",
            "Pxe",
            "UefiShell",
            "UefiTarget",
            "UefiHttp",
        ],
        start_lasts: 1,
        source: "ironic, redfish/management.py (UnableToModifyDuringSystemPOST); sushy, virtual_media.py",
        ..STANDARD
    },
    BmcProfile {
        name: "supermicro",
        vendor: Some("Supermicro"),
        product: "",
        extension: "Supermicro",
        manufacturer: "Supermicro",
        model: "SYS-510T-MR",
        bmc_model: "ASPEED",
        firmware: "01.03.16",
        secure_boot: Some(false),
        has_media_below_system: false,
        media: &[disc("CD1", true)],
        refused_parameters: &["Inserted", "WriteProtected"],
        keeps_image: true,
        rewrites_image: true,
        has_action_info: true,
        targets: &[
            "None",
            "Pxe",
            "Floppy",
            "Cd",
            "Usb",
            "Hdd",
            "BiosSetup",
            "UsbCd",
            "UefiBootNext",
            "UefiHttp",
        ],
        cd_target: Some("UsbCd"),
        resets_mode: true,
        source: "sushy, virtual_media.py and system.py; community.general, issue 6969; bmclib, fixtures/smc_1.14.0",
        ..STANDARD
    },
    BmcProfile {
        name: "xcc",
        vendor: Some("Lenovo"),
        product: "ThinkSystem",
        extension: "Lenovo",
        manufacturer: "Lenovo",
        model: "ThinkSystem SR650",
        bmc_model: "Lenovo XClarity Controller",
        firmware: "CDI388M 9.10",
        has_media_below_system: false,
        media: &[
            disc("RDOC1", false),
            disc("RDOC2", false),
            disc("EXT1", true),
            disc("EXT2", true),
            disc("Remote1", false),
        ],
        has_media_actions: false,
        needs_if_match: true,
        source: "Lenovo, XCC REST API, VirtualMedia; python-redfish-lenovo, issue 21; community.general, issue 11261",
        ..STANDARD
    },
    BmcProfile {
        name: "megarac",
        vendor: Some("AMI"),
        product: "AMI Redfish Server",
        extension: "Ami",
        manufacturer: "ASRockRack",
        model: "1U4LW-ICX",
        bmc_model: "MegaRAC SP-X",
        firmware: "12.61.21",
        system: "Self",
        manager: "Self",
        media: &[disc("CD1", true), disc("CD2", true)],
        demanded_parameters: &["TransferProtocolType"],
        // These two are reported without the family's name.
        transfer_methods: &["Upload"],
        inserts_by_task: true,
        has_remote_media_setting: true,
        demands_full_override: true,
        needs_if_match: true,
        has_weak_tags: true,
        matches_strong_only: true,
        has_simple_storage: true,
        source: "gofish, issue 171; ironic, redfish/management.py (full boot request); community.general, pull request 6434",
        ..STANDARD
    },
    BmcProfile {
        name: "sushy",
        vendor: None,
        product: "",
        extension: "",
        secure_boot: None,
        manufacturer: "Sushy Emulator",
        model: "",
        has_sessions: false,
        targets: &["Pxe", "Cd", "Hdd", "UefiHttp"],
        once_is_continuous: true,
        source: "sushy-tools, emulator/main.py",
        ..STANDARD
    },
];

impl BmcProfile {
    /// The family of this name. Errors: a text with all names.
    pub fn find(name: &str) -> Result<&'static Self, String> {
        let found = BMC_PROFILES.iter().find(|profile| profile.name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = BMC_PROFILES.iter().map(|profile| profile.name).collect();
            format!("{name:?} is none of {}", names.join(", "))
        })
    }

    /// Path of the system.
    pub fn system_path(&self) -> String {
        format!("/redfish/v1/Systems/{}", self.system)
    }

    /// Path of the manager.
    pub fn manager_path(&self) -> String {
        format!("/redfish/v1/Managers/{}", self.manager)
    }

    /// Path of the collection of media.
    pub fn media_path(&self) -> String {
        let home = if self.has_media_below_system {
            self.system_path()
        } else {
            self.manager_path()
        };
        format!("{home}/VirtualMedia")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn families_have_names_sources_and_a_disc() {
        let names: BTreeSet<_> = BMC_PROFILES.iter().map(|profile| profile.name).collect();
        assert_eq!(names.len(), BMC_PROFILES.len());
        for profile in BMC_PROFILES {
            assert_eq!(BmcProfile::find(profile.name).unwrap().name, profile.name);
            let takes_discs =
                |medium: &MediumProfile| medium.takes_images && medium.types.contains(&"CD");
            assert!(profile.media.iter().any(takes_discs), "{}", profile.name);
            assert!(!profile.source.is_empty(), "{}", profile.name);
            let cd = profile
                .cd_target
                .is_none_or(|target| profile.targets.contains(&target));
            assert!(cd, "{}", profile.name);
        }
        assert!(BmcProfile::find("ipmi").unwrap_err().contains("idrac10"));
    }
}
