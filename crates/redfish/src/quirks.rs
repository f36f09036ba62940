//! Differences between the BMCs of vendors, as rows.
//!
//! A BMC belongs to the first row that its identity matches. Rules that hold for all (media in both places, media that
//! count as ejected, entity tags, tasks) are no rows: they are in the modules of the operations.

use super::insert_form::InsertForm;

/// Way of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginMethod {
    /// A session, and user name and password in each request where the BMC has no sessions.
    Session,
    /// User name and password in each request.
    Basic,
}

/// Setting of the boot source to the virtual CD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VirtualCdBoot {
    /// By the standard's boot override.
    Override,
    /// By an import of iDRAC's configuration where the BMC has it, since `Cd` is the drive in the machine.
    DellServerBoot,
}

/// Use of `BootSourceOverrideMode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverrideModeUse {
    /// Only to change it to UEFI.
    WhenDifferent,
    /// In each request.
    Always,
}

/// A family of BMCs.
#[derive(Debug, Clone)]
pub struct BmcQuirks {
    /// Name in reports.
    pub name: &'static str,
    /// Starts of vendor, product or manufacturer, in lower case; empty matches all.
    pub vendors: &'static [&'static str],
    /// Starts of the system's or the manager's model, in lower case; empty matches all.
    pub models: &'static [&'static str],
    /// Way of the login.
    pub login: LoginMethod,
    /// Whether media below the system are tried before those below managers.
    pub has_media_below_system: bool,
    /// Starts of the names of media that take no images from the network.
    pub skipped_media: &'static [&'static str],
    /// Whether a medium that reads as inserted may be an ejected one, so that it is inserted again.
    pub shows_stale_media: bool,
    /// First parameters of an insertion.
    pub insert: InsertForm,
    /// Boot targets of the virtual CD, the best one first.
    pub cd_targets: &'static [&'static str],
    /// Setting of the boot source.
    pub virtual_cd: VirtualCdBoot,
    /// Use of the mode.
    pub mode: OverrideModeUse,
    /// Whether an override for one boot reads as one for all boots.
    pub once_reads_continuous: bool,
    /// Peers or reports that this row follows.
    pub source: &'static str,
}

/// BMCs that follow the standard.
const STANDARD: BmcQuirks = BmcQuirks {
    name: "standard",
    vendors: &[],
    models: &[],
    login: LoginMethod::Session,
    has_media_below_system: true,
    skipped_media: &[],
    shows_stale_media: false,
    insert: InsertForm::FULL,
    cd_targets: &["Cd", "UsbCd"],
    virtual_cd: VirtualCdBoot::Override,
    mode: OverrideModeUse::WhenDifferent,
    once_reads_continuous: false,
    source: "DSP0266, DSP0268",
};

/// All families, the special ones first; the last matches every BMC.
pub static QUIRKS: &[BmcQuirks] = &[
    BmcQuirks {
        name: "Dell iDRAC10",
        vendors: &["dell", "integrated dell"],
        models: &["17g", "18g"],
        // The second medium is there, and its images do not boot.
        skipped_media: &["2"],
        shows_stale_media: true,
        insert: InsertForm::IMAGE,
        virtual_cd: VirtualCdBoot::DellServerBoot,
        source: "ironic, drac/boot.py (acceptable media id) and redfish/power.py (409 after a power-off)",
        ..STANDARD
    },
    BmcQuirks {
        name: "Dell iDRAC",
        vendors: &["dell", "integrated dell"],
        has_media_below_system: false,
        shows_stale_media: true,
        insert: InsertForm::IMAGE,
        virtual_cd: VirtualCdBoot::DellServerBoot,
        source: "ironic, drac/boot.py and redfish/boot.py; sushy-oem-idrac, manager.py",
        ..STANDARD
    },
    BmcQuirks {
        name: "HPE iLO",
        vendors: &["hpe", "hp", "hewlett", "ilo", "proliant"],
        has_media_below_system: false,
        source: "sushy, virtual_media.py (an eject needs a body)",
        ..STANDARD
    },
    BmcQuirks {
        name: "Supermicro Grace",
        vendors: &["supermicro", "super micro"],
        models: &["ars-111gl-nhr"],
        has_media_below_system: false,
        insert: InsertForm::IMAGE,
        mode: OverrideModeUse::Always,
        source: "sushy, system.py (the one model that boots its virtual CD by Cd)",
        ..STANDARD
    },
    BmcQuirks {
        name: "Supermicro",
        vendors: &["supermicro", "super micro"],
        has_media_below_system: false,
        insert: InsertForm::IMAGE,
        cd_targets: &["UsbCd", "Cd"],
        // A change of the target resets the mode.
        mode: OverrideModeUse::Always,
        source: "sushy, virtual_media.py and system.py; ironic, redfish/management.py (story 2008712)",
        ..STANDARD
    },
    BmcQuirks {
        name: "AMI MegaRAC",
        vendors: &["american megatrends", "ami", "asrockrack"],
        insert: InsertForm::IMAGE.with_protocol(),
        mode: OverrideModeUse::Always,
        source: "ironic, redfish/management.py (full boot request); gofish, issue 171",
        ..STANDARD
    },
    BmcQuirks {
        name: "Lenovo XCC",
        vendors: &["lenovo"],
        skipped_media: &["RDOC", "Remote"],
        source: "Lenovo, XCC REST API, VirtualMedia; python-redfish-lenovo, issue 21",
        ..STANDARD
    },
    BmcQuirks {
        name: "sushy-tools",
        vendors: &["sushy emulator"],
        login: LoginMethod::Basic,
        once_reads_continuous: true,
        source: "sushy-tools, emulator/main.py",
        ..STANDARD
    },
    STANDARD,
];

/// The identity of a BMC: texts of the service root, the system and the manager.
#[derive(Debug, Clone, Default)]
pub(super) struct BmcIdentity {
    /// Vendor and product of the root, names of its extensions, manufacturer of the system.
    pub(super) vendors: Vec<String>,
    /// Models of the system and of the manager.
    pub(super) models: Vec<String>,
}

impl BmcQuirks {
    /// The row of a BMC.
    pub(super) fn of(identity: &BmcIdentity) -> &'static Self {
        let starts = |texts: &[String], starts: &[&str]| {
            let texts = texts.iter().map(|text| text.trim().to_lowercase());
            starts.is_empty()
                || texts
                    .into_iter()
                    .any(|text| starts.iter().any(|start| text.starts_with(start)))
        };
        let matches = |row: &&Self| {
            starts(&identity.vendors, row.vendors) && starts(&identity.models, row.models)
        };
        let last = &QUIRKS[QUIRKS.len() - 1];
        QUIRKS.iter().find(matches).unwrap_or(last)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn named(vendor: &str, model: &str) -> &'static str {
        let identity = BmcIdentity {
            vendors: vec![vendor.to_owned()],
            models: vec![model.to_owned()],
        };
        BmcQuirks::of(&identity).name
    }

    #[test]
    fn bmcs_are_recognised() {
        for (vendor, model, expected) in [
            ("Dell Inc.", "14G Monolithic", "Dell iDRAC"),
            ("Dell", "17G Monolithic", "Dell iDRAC10"),
            (
                "Integrated Dell Remote Access Controller",
                "PowerEdge R640",
                "Dell iDRAC",
            ),
            ("HPE", "ProLiant DL360 Gen10", "HPE iLO"),
            ("Supermicro", "ARS-111GL-NHR", "Supermicro Grace"),
            (" Supermicro", "SYS-510T-MR", "Supermicro"),
            ("American Megatrends International", "x", "AMI MegaRAC"),
            ("Lenovo", "ThinkSystem SR650", "Lenovo XCC"),
            ("Sushy Emulator", "", "sushy-tools"),
            ("Contoso", "3500", "standard"),
            ("", "", "standard"),
        ] {
            assert_eq!(named(vendor, model), expected, "{vendor} {model}");
        }
    }

    #[test]
    fn every_row_is_reached_and_has_a_source() {
        let names: BTreeSet<_> = QUIRKS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), QUIRKS.len());
        for row in QUIRKS {
            let model = row.models.first().copied().unwrap_or("Some model");
            let vendor = row.vendors.first().copied().unwrap_or("Other");
            assert_eq!(named(vendor, model), row.name);
            assert!(
                !row.source.is_empty() && !row.cd_targets.is_empty(),
                "{}",
                row.name
            );
        }
    }
}
