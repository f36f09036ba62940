//! Schemes of BMC addresses, as a table.
//!
//! Source: baremetal-operator, pkg/hardwareutils/bmc; its rules for boot MAC, Secure Boot, inspection and RAID.

/// Protocol of a BMC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BmcFamily {
    /// DMTF Redfish, which Atoll drives.
    Redfish,
    /// IPMI over UDP.
    Ipmi,
}

/// Means by which a host boots an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootMethod {
    /// Virtual CD of the BMC.
    VirtualMedia,
    /// UEFI HTTP boot.
    UefiHttp,
    /// iPXE.
    Network,
}

/// Transport of Redfish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BmcTransport {
    /// In clear text.
    Http,
    /// The default.
    Https,
}

impl BmcTransport {
    /// `http` or `https`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// Default port.
    pub const fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// A scheme.
#[derive(Debug, PartialEq, Eq)]
pub struct BmcScheme {
    /// Without transport.
    pub name: &'static str,
    /// Protocol.
    pub family: BmcFamily,
    /// Boot of an installation.
    pub boot: BootMethod,
    /// Whether the boot MAC address is always required.
    pub needs_mac: bool,
    /// Id that systems of this vendor have.
    pub system_id: Option<&'static str>,
}

/// Port of IPMI.
pub(super) const IPMI_PORT: u16 = 623;
/// System id of iDRAC.
const IDRAC_SYSTEM: &str = "System.Embedded.1";

const fn redfish(name: &'static str, boot: BootMethod) -> BmcScheme {
    BmcScheme {
        name,
        family: BmcFamily::Redfish,
        boot,
        needs_mac: false,
        system_id: None,
    }
}

const fn idrac(name: &'static str, boot: BootMethod) -> BmcScheme {
    BmcScheme {
        system_id: Some(IDRAC_SYSTEM),
        ..redfish(name, boot)
    }
}

const fn ipmi(name: &'static str, needs_mac: bool) -> BmcScheme {
    BmcScheme {
        family: BmcFamily::Ipmi,
        needs_mac,
        ..redfish(name, BootMethod::Network)
    }
}

/// All schemes.
pub static SCHEMES: &[BmcScheme] = &[
    redfish("redfish-virtualmedia", BootMethod::VirtualMedia),
    redfish("redfish-uefihttp", BootMethod::UefiHttp),
    redfish("redfish", BootMethod::Network),
    idrac("idrac-virtualmedia", BootMethod::VirtualMedia),
    idrac("idrac-redfish", BootMethod::Network),
    redfish("ilo5-virtualmedia", BootMethod::VirtualMedia),
    redfish("ilo5-redfish", BootMethod::Network),
    ipmi("ipmi", false),
    // IPMI of VirtualBMC: the MAC address cannot be discovered.
    ipmi("libvirt", true),
];

/// Schemes of drivers that were removed, and the one to use now.
pub(super) static REMOVED: &[(&str, &str)] = &[
    ("idrac", "idrac-virtualmedia"),
    ("ilo4", "ipmi"),
    ("ilo4-virtualmedia", "ipmi"),
    ("ilo5", "ilo5-virtualmedia"),
    ("irmc", "redfish-virtualmedia"),
    ("ibmc", "redfish-virtualmedia"),
];

impl BmcScheme {
    /// The scheme of that name, in lower case.
    pub fn find(name: &str) -> Option<&'static Self> {
        SCHEMES.iter().find(|it| it.name == name)
    }

    /// Whether Secure Boot can be switched.
    pub fn can_secure_boot(&self) -> bool {
        self.family == BmcFamily::Redfish
    }

    /// Whether the BMC itself reports the hardware ("fast" inspection), and configures RAID.
    pub fn can_inspect(&self) -> bool {
        self.family == BmcFamily::Redfish
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_schemes_name_a_present_one() {
        for (name, instead) in REMOVED {
            assert!(BmcScheme::find(name).is_none(), "{name}");
            assert!(BmcScheme::find(instead).is_some(), "{instead}");
        }
    }
}
