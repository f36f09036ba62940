//! Members of nmstate's configuration, as far as their values are checked.
//!
//! Source: nmstate 2.2.62, rust/src/lib: net_state.rs, ip.rs, route.rs, route_rule.rs, dns.rs, ifaces/.

use crate::link::{ARP_VALIDATIONS, BOND_MODES, HASH_POLICIES};

/// Shape of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NetworkShape {
    /// Anything: members of rare kinds.
    Any,
    /// Text; a number has to be quoted.
    Text,
    /// A whole number in this range, also as text.
    Number(i64, i64),
    /// True or false, also as text.
    Flag,
    /// One of these words; with an index, its place among them.
    Word(&'static [&'static str], WordIndex),
    /// An address.
    Address,
    /// A network, or an address.
    Network,
    /// An object with these members.
    Object(&'static [(&'static str, NetworkShape)]),
    /// A list of these.
    List(&'static NetworkShape),
}

/// Whether a word may be written as its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordIndex {
    /// By its name alone.
    None,
    /// By its name or index.
    Allowed,
}

use NetworkShape::{Address, Any, Flag, List, Network, Number, Object, Text, Word};

type NetworkMembers = &'static [(&'static str, NetworkShape)];

const U8: NetworkShape = Number(0, u8::MAX as i64);
const U16: NetworkShape = Number(0, u16::MAX as i64);
const U32: NetworkShape = Number(0, u32::MAX as i64);
const I64: NetworkShape = Number(i64::MIN, i64::MAX);
const VLAN_ID: NetworkShape = Number(0, 4094);
const NAMES: NetworkShape = List(&Text);

const fn word(words: &'static [&'static str]) -> NetworkShape {
    Word(words, WordIndex::None)
}

const fn indexed(words: &'static [&'static str]) -> NetworkShape {
    Word(words, WordIndex::Allowed)
}

const ADDRESS: NetworkMembers = &[
    ("ip", Address),
    // The bound of the family is checked with the address.
    ("prefix-length", U8),
    ("protocol", Any),
    ("mptcp-flags", Any),
    ("valid-life-time", Any),
    ("valid-left", Any),
    ("valid-lft", Any),
    ("preferred-life-time", Any),
    ("preferred-left", Any),
    ("preferred-lft", Any),
];

const IP: NetworkMembers = &[
    ("enabled", Flag),
    ("dhcp", Flag),
    ("autoconf", Flag),
    ("address", List(&Object(ADDRESS))),
    ("dhcp-client-id", Text),
    ("dhcp-duid", Text),
    ("dhcp-send-hostname", Flag),
    ("dhcp-custom-hostname", Text),
    ("auto-dns", Flag),
    ("auto-gateway", Flag),
    ("auto-routes", Flag),
    ("auto-route-table-id", U32),
    ("auto-route-metric", I64),
    ("addr-gen-mode", Text),
    ("allow-extra-address", Flag),
    ("token", Text),
    ("forwarding", Flag),
    ("prefix-route-metric", I64),
];

const BOND_OPTIONS: NetworkMembers = &[
    ("ad_actor_sys_prio", U16),
    ("ad_actor_system", Text),
    ("ad_select", indexed(&["stable", "bandwidth", "count"])),
    ("ad_user_port_key", U16),
    ("all_slaves_active", indexed(&["dropped", "delivered"])),
    ("arp_all_targets", indexed(&["any", "all"])),
    ("arp_interval", U32),
    ("arp_ip_target", Text),
    ("arp_missed_max", U8),
    ("arp_validate", indexed(ARP_VALIDATIONS)),
    ("balance_slb", Flag),
    ("balance-slb", Flag),
    ("downdelay", U32),
    ("fail_over_mac", indexed(&["none", "active", "follow"])),
    ("lacp_active", Any),
    ("lacp_rate", indexed(&["slow", "fast"])),
    ("lp_interval", U32),
    ("miimon", U32),
    ("min_links", U32),
    ("ns_ip6_target", NAMES),
    ("num_grat_arp", U8),
    ("num_unsol_na", U8),
    ("packets_per_slave", U32),
    ("primary", Text),
    (
        "primary_reselect",
        indexed(&["always", "better", "failure"]),
    ),
    ("resend_igmp", U32),
    ("tlb_dynamic_lb", Flag),
    ("updelay", U32),
    ("use_carrier", Flag),
    ("xmit_hash_policy", indexed(HASH_POLICIES)),
];

const BOND: NetworkMembers = &[
    ("mode", indexed(BOND_MODES)),
    ("options", Object(BOND_OPTIONS)),
    ("port", NAMES),
    ("ports", NAMES),
    ("ports-config", Any),
];

const VLAN: NetworkMembers = &[
    ("base-iface", Text),
    ("id", VLAN_ID),
    ("protocol", word(&["802.1q", "802.1ad"])),
    ("registration-protocol", word(&["gvrp", "mvrp", "none"])),
    ("reorder-headers", Flag),
    ("loose-binding", Flag),
    ("ingress-qos-map", Any),
    ("egress-qos-map", Any),
];

const BRIDGE_PORT: NetworkMembers = &[
    ("name", Text),
    ("stp-hairpin-mode", Flag),
    ("stp-path-cost", U32),
    ("stp-priority", U16),
    ("vlan", Any),
    ("link-aggregation", Any),
    ("bond", Any),
];

/// Of Linux bridges, then of those of Open vSwitch.
const BRIDGE_OPTIONS: NetworkMembers = &[
    ("gc-timer", Any),
    ("group-addr", Any),
    ("group-forward-mask", Any),
    ("group-fwd-mask", Any),
    ("hash-max", Any),
    ("hello-timer", Any),
    ("mac-ageing-time", Any),
    ("multicast-last-member-count", Any),
    ("multicast-last-member-interval", Any),
    ("multicast-membership-interval", Any),
    ("multicast-querier", Any),
    ("multicast-querier-interval", Any),
    ("multicast-query-interval", Any),
    ("multicast-query-response-interval", Any),
    ("multicast-query-use-ifaddr", Any),
    ("multicast-router", Any),
    ("multicast-snooping", Any),
    ("multicast-startup-query-count", Any),
    ("multicast-startup-query-interval", Any),
    ("stp", Any),
    ("vlan-protocol", Any),
    ("vlan-default-pvid", Any),
    ("rstp", Any),
    ("mcast-snooping-enable", Any),
    ("fail-mode", Any),
    ("datapath", Any),
];

const BRIDGE: NetworkMembers = &[
    ("options", Object(BRIDGE_OPTIONS)),
    ("port", List(&Object(BRIDGE_PORT))),
    ("ports", List(&Object(BRIDGE_PORT))),
    ("allow-extra-ports", Flag),
    ("allow-extra-patch-ports", Flag),
];

const ETHERNET: NetworkMembers = &[
    ("auto-negotiation", Flag),
    ("auto-neg", Flag),
    ("speed", U32),
    ("duplex", word(&["full", "half"])),
    ("sr-iov", Any),
];

const INFINIBAND: NetworkMembers = &[
    ("mode", word(&["datagram", "connected"])),
    ("base-iface", Text),
    ("pkey", U16),
];

const MAC_VLAN: NetworkMembers = &[
    ("base-iface", Text),
    (
        "mode",
        word(&["vepa", "bridge", "private", "passthru", "source", "unknown"]),
    ),
    ("promiscuous", Flag),
    ("accept-all-mac", Flag),
];

const VRF: NetworkMembers = &[("port", NAMES), ("ports", NAMES), ("route-table-id", U32)];

const VXLAN: NetworkMembers = &[
    ("base-iface", Text),
    ("id", Number(0, 0xff_ffff)),
    ("learning", Flag),
    ("local", Address),
    ("remote", Address),
    ("destination-port", U16),
];

const LLDP: NetworkMembers = &[("enabled", Flag), ("neighbors", Any)];

/// Members of an interface of a known type.
pub(crate) const INTERFACE: NetworkMembers = &[
    ("name", Text),
    ("profile-name", Text),
    ("description", Text),
    ("type", Text),
    ("driver", Any),
    (
        "state",
        word(&["up", "down", "absent", "unknown", "ignore"]),
    ),
    ("identifier", word(&["name", "mac-address", "pci-address"])),
    ("mac-address", Text),
    ("permanent-mac-address", Text),
    ("pci-address", Text),
    ("alt-names", Any),
    ("mtu", U32),
    ("min-mtu", Any),
    ("max-mtu", Any),
    ("wait-ip", word(&["any", "ipv4", "ipv6", "ipv4+ipv6"])),
    ("ipv4", Object(IP)),
    ("ipv6", Object(IP)),
    ("mptcp", Any),
    ("controller", Text),
    ("accept-all-mac-addresses", Flag),
    ("copy-mac-from", Text),
    ("ovs-db", Any),
    ("802.1x", Any),
    ("lldp", Object(LLDP)),
    ("ethtool", Any),
    ("dispatch", Any),
    ("link-aggregation", Object(BOND)),
    ("bond", Object(BOND)),
    ("bridge", Object(BRIDGE)),
    ("ethernet", Object(ETHERNET)),
    ("hsr", Any),
    ("infiniband", Object(INFINIBAND)),
    ("ip-tunnel", Any),
    ("ipvlan", Any),
    ("libreswan", Any),
    ("mac-vlan", Object(MAC_VLAN)),
    ("mac-vtap", Object(MAC_VLAN)),
    ("macsec", Any),
    ("patch", Any),
    ("dpdk", Any),
    ("veth", Any),
    ("vlan", Object(VLAN)),
    ("vrf", Object(VRF)),
    ("vxlan", Object(VXLAN)),
];

/// Types of interfaces. An interface of another one is not checked: a newer nmstate may know it.
pub(crate) const TYPES: [&str; 21] = [
    "bond",
    "linux-bridge",
    "dummy",
    "ethernet",
    "hsr",
    "infiniband",
    "ip-tunnel",
    "ipsec",
    "ipvlan",
    "loopback",
    "mac-vlan",
    "mac-vtap",
    "macsec",
    "ovs-bridge",
    "ovs-interface",
    "tun",
    "veth",
    "vlan",
    "vrf",
    "vxlan",
    "xfrm",
];

/// Sections of an interface, and the types that have each; an interface without a type is an ethernet interface.
pub(crate) const SECTIONS: &[(&str, &[&str])] = &[
    ("bond", &["bond"]),
    ("bridge", &["linux-bridge", "ovs-bridge"]),
    ("ethernet", &["ethernet", "veth"]),
    ("hsr", &["hsr"]),
    ("infiniband", &["infiniband"]),
    ("ip-tunnel", &["ip-tunnel"]),
    ("ipvlan", &["ipvlan"]),
    ("libreswan", &["ipsec"]),
    ("link-aggregation", &["bond"]),
    ("mac-vlan", &["mac-vlan"]),
    ("mac-vtap", &["mac-vtap"]),
    ("macsec", &["macsec"]),
    ("patch", &["ovs-interface"]),
    ("dpdk", &["ovs-interface"]),
    ("veth", &["ethernet", "veth"]),
    ("vlan", &["vlan"]),
    ("vrf", &["vrf"]),
    ("vxlan", &["vxlan"]),
];

/// The section that an interface of a type needs, and the members that the section needs.
pub(crate) const NEEDED: &[(&str, &str, &[&str])] = &[
    ("bond", "link-aggregation", &["mode"]),
    ("vlan", "vlan", &["base-iface", "id"]),
    ("vxlan", "vxlan", &["id"]),
    ("vrf", "vrf", &["route-table-id"]),
    ("infiniband", "infiniband", &["mode", "pkey"]),
    ("mac-vlan", "mac-vlan", &["base-iface", "mode"]),
    ("mac-vtap", "mac-vtap", &["base-iface", "mode"]),
];

const ROUTE: NetworkMembers = &[
    ("state", word(&["absent", "ignore"])),
    ("destination", Network),
    ("next-hop-interface", Text),
    ("next-hop-address", Address),
    ("metric", I64),
    ("table-id", U32),
    ("weight", Number(1, 256)),
    (
        "route-type",
        word(&["blackhole", "unreachable", "prohibit"]),
    ),
    ("source", Address),
    ("cwnd", U32),
    ("initcwnd", U32),
    ("initrwnd", U32),
    ("mtu", U32),
    ("quickack", Any),
    ("advmss", U32),
    ("lock-mtu", Any),
    ("vrf-name", Text),
];

const ROUTES: NetworkMembers = &[("running", Any), ("config", List(&Object(ROUTE)))];

const RULE: NetworkMembers = &[
    ("family", word(&["ipv4", "ipv6", "unknown"])),
    ("state", word(&["absent"])),
    ("ip-from", Network),
    ("ip-to", Network),
    ("priority", I64),
    ("route-table", U32),
    ("fwmark", U32),
    ("fwmask", U32),
    ("action", word(&["blackhole", "unreachable", "prohibit"])),
    ("iif", Text),
    ("suppress-prefix-length", U32),
    ("suppress_prefixlength", U32),
];

const RULES: NetworkMembers = &[("running", Any), ("config", List(&Object(RULE)))];

const RESOLVER: NetworkMembers = &[("server", NAMES), ("search", NAMES), ("options", NAMES)];

const DNS: NetworkMembers = &[("running", Any), ("config", Object(RESOLVER))];

/// Members of the document besides its interfaces.
pub(crate) const DOCUMENT: NetworkMembers = &[
    ("description", Text),
    ("hostname", Any),
    ("dns-resolver", Object(DNS)),
    ("route-rules", Object(RULES)),
    ("routes", Object(ROUTES)),
    ("ovs-db", Any),
    ("ovn", Any),
    // Checked apart, each by its type.
    ("interfaces", Any),
];
