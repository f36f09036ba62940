//! Platform, network plug-in, load balancer, disk encryption, ignition endpoint.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::Error;
use model::cluster::{
    CloudControllerManager, ClusterPlatform, DiskEncryption, DiskEncryptionMode,
    DiskEncryptionTarget, IgnitionEndpoint, LoadBalancer, LoadBalancerType, PlatformType,
};
use model::network::NetworkType;
use model::versions::CpuArchitecture;
use url::Url;

use super::refusal::refuse;
use super::secrets::ca_certificates;
use super::tang::tang_servers;
use crate::versions::at_least;

/// Reconciles platform and `user_managed_networking`; the second is absent where the platform decides later.
/// Source: assisted-service, internal/provider/platform.go.
pub(crate) fn platform(
    given: Option<&ClusterPlatform>,
    user_managed_networking: Option<bool>,
    single_node: bool,
    architecture: CpuArchitecture,
) -> Result<(ClusterPlatform, Option<bool>), Error> {
    const FIELD: &str = "platform.type";
    let mainframe = matches!(
        architecture,
        CpuArchitecture::S390x | CpuArchitecture::Ppc64le
    );
    let mut wanted = match given {
        Some(platform) => platform.clone(),
        None if single_node || mainframe || user_managed_networking == Some(true) => {
            ClusterPlatform {
                r#type: PlatformType::None,
                external: None,
            }
        }
        None => ClusterPlatform::default(),
    };
    check_external(&wanted)?;
    // Clients read the member on every platform.
    wanted.external.get_or_insert_default();
    let kind = wanted.r#type;
    if single_node && !matches!(kind, PlatformType::None | PlatformType::External) {
        return Err(refuse(
            FIELD,
            kind.as_str(),
            "is not possible on a single-node cluster: use none or external",
        ));
    }
    if mainframe && kind != PlatformType::None {
        return Err(refuse(
            FIELD,
            kind.as_str(),
            &format!("is not possible on {architecture}: use none"),
        ));
    }
    let (implied, expected) = match kind {
        PlatformType::Baremetal => (Some(false), Some(false)),
        PlatformType::None | PlatformType::External => (Some(true), Some(true)),
        PlatformType::Nutanix => (None, Some(false)),
        // Both ways of networking are possible.
        PlatformType::Vsphere => (user_managed_networking, None),
    };
    if let (Some(asked), Some(expected)) = (user_managed_networking, expected)
        && asked != expected
    {
        return Err(refuse(
            "user_managed_networking",
            if asked { "true" } else { "false" },
            &format!("does not agree with platform {kind}: use {expected}, or leave it out"),
        ));
    }
    Ok((wanted, implied))
}

/// Source: assisted-service, internal/provider/platform_validations.go, validateExternalPlatform.
fn check_external(platform: &ClusterPlatform) -> Result<(), Error> {
    let external = platform.external.as_ref();
    let name = external.and_then(|external| external.platform_name.as_deref());
    let manager = external.and_then(|external| external.cloud_controller_manager);
    if platform.r#type != PlatformType::External {
        if name.is_some() || manager.is_some() {
            return Err(refuse(
                "platform.external",
                name.unwrap_or_default(),
                &format!(
                    "belongs to platform external, not {}: leave it out",
                    platform.r#type
                ),
            ));
        }
        return Ok(());
    }
    match name {
        None | Some("") => Err(Error::invalid(
            "platform.external.platform_name",
            "is missing: platform external needs the name of the provider",
        )),
        Some("oci") if manager != Some(CloudControllerManager::External) => Err(Error::invalid(
            "platform.external.cloud_controller_manager",
            "should be External: the platform oci needs its own cloud controller manager",
        )),
        Some(_) => Ok(()),
    }
}

/// Checks the network plug-in, or chooses the version's default.
/// Source: assisted-service, internal/bminventory/inventory.go, getDefaultNetworkType.
pub(crate) fn network_type(
    given: Option<NetworkType>,
    version: &str,
    single_node: bool,
    ipv6: bool,
) -> Result<NetworkType, Error> {
    const FIELD: &str = "network_type";
    let Some(wanted) = given else {
        return Ok(if at_least(version, 4, 12) || single_node || ipv6 {
            NetworkType::OVNKubernetes
        } else {
            NetworkType::OpenShiftSDN
        });
    };
    if wanted == NetworkType::OpenShiftSDN {
        if at_least(version, 4, 15) {
            return Err(refuse(
                FIELD,
                wanted.as_str(),
                &format!("is not part of version {version}: use OVNKubernetes"),
            ));
        }
        if single_node {
            return Err(refuse(
                FIELD,
                wanted.as_str(),
                "is not possible on a single-node cluster: use OVNKubernetes",
            ));
        }
    }
    Ok(wanted)
}

/// Inputs of the load balancer rules.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoadBalancerFacts<'a> {
    pub(crate) version: &'a str,
    pub(crate) platform: PlatformType,
    pub(crate) dual_stack: bool,
    pub(crate) user_managed_networking: bool,
    pub(crate) dhcp: bool,
}

/// Checks the load balancer; `cluster-managed` is the default.
/// Source: assisted-service, internal/featuresupport/features_networking.go.
pub(crate) fn load_balancer(
    given: Option<&LoadBalancer>,
    facts: &LoadBalancerFacts<'_>,
) -> Result<LoadBalancer, Error> {
    let kind = given
        .and_then(|balancer| balancer.r#type)
        .unwrap_or(LoadBalancerType::ClusterManaged);
    if kind == LoadBalancerType::UserManaged {
        let reason = if !at_least(facts.version, 4, 16) {
            Some("needs version 4.16 or later")
        } else if !matches!(
            facts.platform,
            PlatformType::Baremetal | PlatformType::Vsphere
        ) {
            Some("needs platform baremetal or vsphere")
        } else if facts.dual_stack {
            Some("is not possible on a dual-stack cluster")
        } else if facts.user_managed_networking {
            Some("is not possible with user_managed_networking")
        } else if facts.dhcp {
            Some("is not possible with vip_dhcp_allocation")
        } else {
            None
        };
        if let Some(reason) = reason {
            return Err(refuse(
                "load_balancer.type",
                kind.as_str(),
                &format!("{reason}: use cluster-managed"),
            ));
        }
    }
    Ok(LoadBalancer { r#type: Some(kind) })
}

/// Checks disk encryption, and completes it with the defaults.
/// Source: assisted-service, internal/cluster/validations/validations.go, ValidateDiskEncryptionParams.
pub fn disk_encryption(
    given: Option<&DiskEncryption>,
    supported: bool,
) -> Result<DiskEncryption, Error> {
    let given = given.cloned().unwrap_or_default();
    let target = given.enable_on.unwrap_or(DiskEncryptionTarget::None);
    let mode = given.mode.unwrap_or(DiskEncryptionMode::Tpmv2);
    if target != DiskEncryptionTarget::None {
        if !supported {
            return Err(refuse(
                "disk_encryption.enable_on",
                target.as_str(),
                "is not possible on this service: use none, or set DISK_ENCRYPTION_SUPPORT=true",
            ));
        }
        if mode == DiskEncryptionMode::Tang {
            tang_servers(&given.tang_servers)?;
        }
    }
    Ok(DiskEncryption {
        enable_on: Some(target),
        mode: Some(mode),
        tang_servers: given.tang_servers,
    })
}

/// Checks the ignition endpoint of day-2 hosts.
/// Source: assisted-service, internal/bminventory/inventory.go, validateIgnitionEndpoint.
pub fn ignition_endpoint(endpoint: &IgnitionEndpoint) -> Result<(), Error> {
    if let Some(text) = endpoint.url.as_deref().filter(|text| !text.is_empty()) {
        let is_good = Url::parse(text)
            .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.host().is_some());
        if !is_good {
            return Err(refuse(
                "ignition_endpoint.url",
                text,
                "is not a URL: write http://host:port/path or https://…",
            ));
        }
    }
    if let Some(text) = endpoint
        .ca_certificate
        .as_deref()
        .filter(|text| !text.is_empty())
    {
        const FIELD: &str = "ignition_endpoint.ca_certificate";
        let pem = STANDARD
            .decode(text)
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .filter(|pem| !pem.trim().is_empty())
            .ok_or_else(|| Error::invalid(FIELD, "is not the base64 of a PEM certificate"))?;
        ca_certificates(FIELD, &pem)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use model::cluster::PlatformExternal;

    use super::*;

    fn kind(kind: PlatformType) -> ClusterPlatform {
        ClusterPlatform {
            r#type: kind,
            external: None,
        }
    }

    #[test]
    fn platform_and_networking_agree() {
        use PlatformType::{Baremetal, None as Nil, Nutanix, Vsphere};
        const X86: CpuArchitecture = CpuArchitecture::X86_64;
        for (given, asked, single, architecture, expected) in [
            (None, None, false, X86, Some((Baremetal, Some(false)))),
            (None, Some(true), false, X86, Some((Nil, Some(true)))),
            (Some(Baremetal), Some(true), false, X86, None),
            (Some(Nil), None, false, X86, Some((Nil, Some(true)))),
            (Some(Nil), Some(false), false, X86, None),
            (Some(Vsphere), None, false, X86, Some((Vsphere, None))),
            (
                Some(Vsphere),
                Some(true),
                false,
                X86,
                Some((Vsphere, Some(true))),
            ),
            (Some(Vsphere), Some(true), true, X86, None),
            (Some(Nutanix), Some(true), false, X86, None),
            (None, None, true, X86, Some((Nil, Some(true)))),
            (Some(Baremetal), None, true, X86, None),
            (None, Some(false), true, X86, None),
            (
                None,
                None,
                false,
                CpuArchitecture::S390x,
                Some((Nil, Some(true))),
            ),
            (Some(Baremetal), None, false, CpuArchitecture::Ppc64le, None),
        ] {
            let wanted = given.map(kind);
            let found = platform(wanted.as_ref(), asked, single, architecture);
            let found = found.ok().map(|(platform, umn)| (platform.r#type, umn));
            assert_eq!(
                found, expected,
                "{given:?} {asked:?} {single} {architecture}"
            );
        }
    }

    #[test]
    fn external_needs_its_members() {
        let external = |name: Option<&str>, manager| ClusterPlatform {
            r#type: PlatformType::External,
            external: Some(PlatformExternal {
                platform_name: name.map(str::to_owned),
                cloud_controller_manager: manager,
            }),
        };
        let check =
            |given: &ClusterPlatform| platform(Some(given), None, false, CpuArchitecture::X86_64);
        assert!(check(&external(Some("acme"), None)).is_ok());
        assert!(check(&external(None, None)).is_err());
        assert!(check(&external(Some("oci"), None)).is_err());
        assert!(
            check(&external(
                Some("oci"),
                Some(CloudControllerManager::External)
            ))
            .is_ok()
        );
        let mut wrong = external(Some("acme"), None);
        wrong.r#type = PlatformType::Baremetal;
        assert!(check(&wrong).is_err());
    }

    #[test]
    fn plug_ins_by_version() {
        use NetworkType::{Cilium, OVNKubernetes, OpenShiftSDN};
        for (given, version, single, expected) in [
            (None, "4.16.1", false, Some(OVNKubernetes)),
            (None, "4.11.1", false, Some(OpenShiftSDN)),
            (None, "4.11.1", true, Some(OVNKubernetes)),
            (Some(OpenShiftSDN), "4.14.1", false, Some(OpenShiftSDN)),
            (Some(OpenShiftSDN), "4.15.1", false, None),
            (Some(OpenShiftSDN), "4.14.1", true, None),
            (Some(Cilium), "4.16.1", false, Some(Cilium)),
        ] {
            let found = network_type(given, version, single, false).ok();
            assert_eq!(found, expected, "{given:?} {version} {single}");
        }
    }

    #[test]
    fn the_users_load_balancer_needs_a_fitting_cluster() {
        let facts = LoadBalancerFacts {
            version: "4.16.3",
            platform: PlatformType::Baremetal,
            dual_stack: false,
            user_managed_networking: false,
            dhcp: false,
        };
        let user = LoadBalancer {
            r#type: Some(LoadBalancerType::UserManaged),
        };
        assert!(load_balancer(Some(&user), &facts).is_ok());
        for bad in [
            LoadBalancerFacts {
                version: "4.15.9",
                ..facts
            },
            LoadBalancerFacts {
                platform: PlatformType::None,
                ..facts
            },
            LoadBalancerFacts {
                dual_stack: true,
                ..facts
            },
            LoadBalancerFacts {
                user_managed_networking: true,
                ..facts
            },
            LoadBalancerFacts {
                dhcp: true,
                ..facts
            },
        ] {
            assert!(load_balancer(Some(&user), &bad).is_err(), "{bad:?}");
            assert!(load_balancer(None, &bad).is_ok(), "{bad:?}");
        }
    }

    #[test]
    fn encryption_needs_support_and_servers() {
        let on = |mode, servers: &str| DiskEncryption {
            enable_on: Some(DiskEncryptionTarget::All),
            mode: Some(mode),
            tang_servers: servers.to_owned(),
        };
        assert!(disk_encryption(None, false).is_ok());
        assert!(disk_encryption(Some(&on(DiskEncryptionMode::Tpmv2, "")), true).is_ok());
        assert!(disk_encryption(Some(&on(DiskEncryptionMode::Tpmv2, "")), false).is_err());
        let good = r#"[{"url":"http://tang:7500","thumbprint":"x"}]"#;
        assert!(disk_encryption(Some(&on(DiskEncryptionMode::Tang, good)), true).is_ok());
        assert!(disk_encryption(Some(&on(DiskEncryptionMode::Tang, "")), true).is_err());
    }

    #[test]
    fn endpoints() {
        let endpoint = |url: &str, ca: &str| IgnitionEndpoint {
            url: Some(url.to_owned()),
            ca_certificate: Some(ca.to_owned()),
        };
        assert!(ignition_endpoint(&endpoint("http://a:1/x", "")).is_ok());
        assert!(ignition_endpoint(&endpoint("a:1", "")).is_err());
        assert!(ignition_endpoint(&endpoint("", "!")).is_err());
        assert!(ignition_endpoint(&endpoint("", &STANDARD.encode("no pem"))).is_err());
    }
}
