//! The table of mistakes, each with its requirement and its fix.

use super::{MistakeKind, SiteFinding, addresses, machines, services};
use crate::site::Site;

/// All mistakes that are looked for, those first that explain later ones.
pub static KINDS: &[MistakeKind] = &[
    MistakeKind {
        id: "host-record-unknown",
        required: "a host of agent-config.yaml with the name or a MAC address of the record",
        fix: "Correct the name of the record, or add the host to agent-config.yaml.",
        find: machines::unknown_records,
    },
    MistakeKind {
        id: "mac-duplicate",
        required: "MAC addresses that one host has",
        fix: "Read the MAC address from the label or the BMC of each host.",
        find: machines::duplicate_macs,
    },
    MistakeKind {
        id: "mac-not-in-hardware",
        required: "MAC addresses of the host's NICs",
        fix: "Replace it with the MAC address of a NIC that the hardware record lists.",
        find: machines::unknown_macs,
    },
    MistakeKind {
        id: "boot-mac-unknown",
        required: "a boot MAC address among the interfaces of the host",
        fix: "Set bootMACAddress to the MAC address of the NIC that boots.",
        find: machines::unknown_boot_macs,
    },
    MistakeKind {
        id: "bmc-duplicate",
        required: "BMC addresses that one host has",
        fix: "Set the BMC address of each host: one of them would be switched on in place of the other.",
        find: machines::duplicate_boards,
    },
    MistakeKind {
        id: "interface-unknown",
        required: "an entry of the host's interfaces for each NIC in networkConfig",
        fix: "Name the NIC in interfaces with its MAC address, as networkConfig spells it.",
        find: machines::unknown_interfaces,
    },
    MistakeKind {
        id: "port-unknown",
        required: "ports and base interfaces that networkConfig defines",
        fix: "Add the interface to networkConfig, or correct its name.",
        find: machines::unknown_ports,
    },
    MistakeKind {
        id: "route-interface",
        required: "routes by interfaces of networkConfig that have the address family of the route",
        fix: "Correct next-hop-interface, or give the interface addresses of that family.",
        find: machines::routes_without_interface,
    },
    MistakeKind {
        id: "root-device-not-found",
        required: "a disk of the host that has all properties of rootDeviceHints",
        fix: "Correct rootDeviceHints with the properties of a disk in the hardware record.",
        find: machines::missing_root_devices,
    },
    MistakeKind {
        id: "architecture-mismatch",
        required: "hosts of the architecture in install-config.yaml",
        fix: "Set architecture of controlPlane and compute to that of the hosts.",
        find: machines::other_architectures,
    },
    MistakeKind {
        id: "worker-count",
        required: "as many hosts with the role worker as compute[0].replicas",
        fix: "Correct compute[0].replicas, or the roles of the hosts.",
        find: machines::worker_count,
    },
    MistakeKind {
        id: "address-duplicate",
        required: "addresses that one host has",
        fix: "Give each host an address of its own.",
        find: addresses::duplicates,
    },
    MistakeKind {
        id: "address-reserved",
        required: "an address of a host: not that of the network, of broadcast or of the router",
        fix: "Give the host another address of the network.",
        find: addresses::reserved,
    },
    MistakeKind {
        id: "prefix-mismatch",
        required: "the prefix length of the machine network",
        fix: "Correct prefix-length of the address, or the machine network.",
        find: addresses::other_prefixes,
    },
    MistakeKind {
        id: "gateway-outside-network",
        required: "a next hop inside a network of the route's interface",
        fix: "Correct next-hop-address, or address and prefix-length of the interface.",
        find: addresses::far_gateways,
    },
    MistakeKind {
        id: "vip-taken",
        required: "virtual addresses that no host or router has",
        fix: "Reserve free addresses of the machine network for the virtual addresses.",
        find: addresses::taken_vips,
    },
    MistakeKind {
        id: "mtu-mismatch",
        required: "the same MTU on all hosts of a network",
        fix: "Set the MTU of the switch on all interfaces of the network.",
        find: addresses::mixed_mtus,
    },
    MistakeKind {
        id: "dns-missing",
        required: "a DNS server for each host with a static network",
        fix: "Add dns-resolver.config.server to networkConfig.",
        find: services::missing_dns,
    },
    MistakeKind {
        id: "dns-unreachable",
        required: "a DNS server on a network of the host, or a route to it",
        fix: "Correct the address of the server, or add a route.",
        find: services::unreachable_dns,
    },
    MistakeKind {
        id: "time-source-missing",
        required: "a time source: without internet the default ones do not answer, and no DHCP server names one",
        fix: "Set additionalNTPSources in agent-config.yaml.",
        find: services::missing_time_source,
    },
    MistakeKind {
        id: "pull-secret-registry",
        required: "credentials for each registry that releases are mirrored to",
        fix: "Add the registry to auths of pullSecret, with the port that the mirror has.",
        find: services::missing_credentials,
    },
];

/// Validations that fail on every host because of one mistake of the data: they are no further mistakes.
static CONSEQUENCES: &[(&str, &[&str])] = &[("time-source-missing", &["ntp-synced"])];

/// Whether a finding of an installation follows from a mistake of the data.
pub fn is_consequence(finding: &SiteFinding, mistakes: &[SiteFinding]) -> bool {
    CONSEQUENCES.iter().any(|(mistake, validations)| {
        validations.contains(&finding.id.as_str()) && mistakes.iter().any(|one| one.id == *mistake)
    })
}

/// The mistakes of a site, in the order of the table.
pub fn check(site: &Site) -> Vec<SiteFinding> {
    let found = KINDS.iter().flat_map(|kind| {
        let places = (kind.find)(site).into_iter();
        places.map(|place| SiteFinding {
            id: kind.id.to_owned(),
            host: place.host,
            observed: place.observed,
            required: kind.required.to_owned(),
            fix: kind.fix.to_owned(),
        })
    });
    found.collect()
}
