//! Variants and versions of Butane.

use crate::config::SpecVersion;

/// A variant and version: its keys, its output, its restrictions.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ButaneSpec {
    /// Name of the variant.
    pub(super) variant: &'static str,
    /// Version as it is written.
    pub(super) version: &'static str,
    /// The minor version of `fcos` that has the same keys.
    pub(super) fcos: u8,
    /// The minor version of OpenShift.
    pub(super) openshift: Option<u8>,
}

const fn fcos(version: &'static str, fcos: u8) -> ButaneSpec {
    ButaneSpec {
        variant: "fcos",
        version,
        fcos,
        openshift: None,
    }
}

const fn openshift(version: &'static str, minor: u8, fcos: u8) -> ButaneSpec {
    ButaneSpec {
        variant: "openshift",
        version,
        fcos,
        openshift: Some(minor),
    }
}

/// Source: coreos/butane, config/config.go; the keys of `openshift` are those of config/openshift/*/schema.go.
static SPECS: &[ButaneSpec] = &[
    fcos("1.0.0", 0),
    fcos("1.1.0", 1),
    fcos("1.2.0", 2),
    fcos("1.3.0", 3),
    fcos("1.4.0", 4),
    fcos("1.5.0", 5),
    fcos("1.6.0", 6),
    fcos("1.7.0", 7),
    openshift("4.8.0", 8, 3),
    openshift("4.9.0", 9, 3),
    openshift("4.10.0", 10, 3),
    openshift("4.11.0", 11, 3),
    openshift("4.12.0", 12, 3),
    openshift("4.13.0", 13, 3),
    openshift("4.14.0", 14, 5),
    openshift("4.15.0", 15, 5),
    openshift("4.16.0", 16, 5),
    openshift("4.17.0", 17, 5),
    openshift("4.18.0", 18, 5),
    openshift("4.19.0", 19, 6),
    openshift("4.20.0", 20, 6),
    openshift("4.21.0", 21, 6),
    openshift("4.22.0", 22, 6),
];

/// A variant or version that is not supported.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnsupportedSpec {
    /// The member that names it.
    pub(super) member: &'static str,
    /// The message.
    pub(super) reason: String,
}

impl ButaneSpec {
    /// The row of a variant and version.
    ///
    /// Errors: the variant or the version is not supported.
    pub(super) fn find(variant: &str, version: &str) -> Result<&'static Self, UnsupportedSpec> {
        let mut of_variant = SPECS.iter().filter(|spec| spec.variant == variant);
        let (Some(first), Some(last)) = (of_variant.clone().next(), of_variant.clone().next_back())
        else {
            let hint = match variant {
                "rhcos" => ", which replaced it for nodes of clusters",
                "flatcar" | "fiot" | "r4e" => ": the others are for systems that are no nodes",
                _ => "",
            };
            let reason = format!(
                "variant {variant:?} is not supported, expected \"fcos\" or \"openshift\"{hint}"
            );
            return Err(UnsupportedSpec {
                member: "variant",
                reason,
            });
        };
        of_variant
            .find(|spec| spec.version == version)
            .ok_or_else(|| UnsupportedSpec {
                member: "version",
                reason: format!(
                    "version {version:?} of {variant} is not supported, expected {} to {}",
                    first.version, last.version
                ),
            })
    }

    /// The version of Ignition that is written.
    pub(super) fn ignition(&self) -> SpecVersion {
        match self.fcos {
            0 => SpecVersion::V3_0,
            1 => SpecVersion::V3_1,
            2 | 3 => SpecVersion::V3_2,
            4 => SpecVersion::V3_3,
            5 => SpecVersion::V3_4,
            6 => SpecVersion::V3_5,
            _ => SpecVersion::V3_6,
        }
    }

    /// Whether this is `openshift` of the minor version or later.
    pub(super) fn is_openshift_since(&self, minor: u8) -> bool {
        self.openshift.is_some_and(|own| own >= minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supported_versions_are_named() {
        let spec = ButaneSpec::find("openshift", "4.14.0").unwrap();
        assert_eq!(spec.ignition(), SpecVersion::V3_4);
        assert!(spec.is_openshift_since(14) && !spec.is_openshift_since(15));
        assert_eq!(
            ButaneSpec::find("fcos", "1.9.0").unwrap_err().reason,
            "version \"1.9.0\" of fcos is not supported, expected 1.0.0 to 1.7.0"
        );
        for variant in ["toaster", "rhcos", "r4e"] {
            let error = ButaneSpec::find(variant, "1.0.0").unwrap_err();
            assert_eq!(error.member, "variant");
            let reason = error.reason;
            assert!(reason.contains("\"fcos\" or \"openshift\""), "{reason}");
        }
    }
}
