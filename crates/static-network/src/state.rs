//! The nmstate configuration, as far as keyfiles are rendered. Unknown members are refused by name.
//!
//! Source: nmstate, rust/src/lib/{net_state,route,route_rule,dns,ip}.rs and ifaces/.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;
use serde_json::Value;

use crate::scalar::{Flag, Integer};

/// Members of a section of an interface.
pub(crate) type PartMembers = BTreeMap<String, Value>;

/// A whole configuration. `hostname`, `description`, and the settings of Open vSwitch and OVN that belong to no interface
/// have no keyfile; nmstate leaves them out, too.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct NetworkState {
    #[serde(rename = "description")]
    _description: Option<String>,
    #[serde(rename = "hostname")]
    _hostname: Option<Value>,
    #[serde(rename = "ovs-db")]
    _ovs_db: Option<Value>,
    #[serde(rename = "ovn")]
    _ovn: Option<Value>,
    #[serde(default)]
    pub(crate) interfaces: Vec<Interface>,
    #[serde(default)]
    pub(crate) routes: Configured<Vec<StaticRoute>>,
    #[serde(default)]
    pub(crate) route_rules: Configured<Vec<RouteRule>>,
    #[serde(default)]
    pub(crate) dns_resolver: Configured<Resolver>,
}

/// A wanted part; the running one is information only.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Configured<T> {
    #[serde(rename = "running")]
    _running: Option<Value>,
    pub(crate) config: Option<T>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum InterfaceKind {
    /// Also the end of a pair of virtual ones.
    #[default]
    #[serde(alias = "unknown", alias = "veth")]
    Ethernet,
    Bond,
    Dummy,
    Hsr,
    Infiniband,
    IpTunnel,
    Ipsec,
    #[serde(rename = "ipvlan")]
    IpVlan,
    LinuxBridge,
    Loopback,
    MacVlan,
    MacVtap,
    Macsec,
    OvsBridge,
    OvsInterface,
    /// The end of a pair that only the other one names.
    #[serde(skip)]
    VethPeer,
    Vlan,
    Vrf,
    Vxlan,
}

impl InterfaceKind {
    /// Name in nmstate, of which ids are made.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ethernet => "ethernet",
            Self::Bond => "bond",
            Self::Dummy => "dummy",
            Self::Hsr => "hsr",
            Self::Infiniband => "infiniband",
            Self::IpTunnel => "ip-tunnel",
            Self::Ipsec => "ipsec",
            Self::IpVlan => "ipvlan",
            Self::LinuxBridge => "linux-bridge",
            Self::Loopback => "loopback",
            Self::MacVlan => "mac-vlan",
            Self::MacVtap => "mac-vtap",
            Self::Macsec => "macsec",
            Self::OvsBridge => "ovs-bridge",
            Self::OvsInterface => "ovs-interface",
            Self::VethPeer => "veth",
            Self::Vlan => "vlan",
            Self::Vrf => "vrf",
            Self::Vxlan => "vxlan",
        }
    }

    /// Whether interfaces of this kind have ports.
    pub(crate) fn is_controller(self) -> bool {
        matches!(
            self,
            Self::Bond | Self::Hsr | Self::LinuxBridge | Self::OvsBridge | Self::Vrf
        )
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum InterfaceState {
    #[default]
    Up,
    Down,
    Absent,
    Ignore,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Identifier {
    #[default]
    Name,
    MacAddress,
    PciAddress,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct Interface {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: InterfaceKind,
    pub(crate) state: InterfaceState,
    pub(crate) profile_name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) identifier: Identifier,
    pub(crate) mac_address: Option<String>,
    pub(crate) pci_address: Option<String>,
    pub(crate) copy_mac_from: Option<String>,
    pub(crate) mtu: Option<Integer<u32>>,
    pub(crate) ipv4: Option<Ipv4>,
    pub(crate) ipv6: Option<Ipv6>,
    pub(crate) controller: Option<String>,
    pub(crate) accept_all_mac_addresses: Option<Flag>,
    pub(crate) lldp: Option<Lldp>,
    pub(crate) wait_ip: Option<WaitIp>,
    pub(crate) ethernet: Option<Ethernet>,
    #[serde(alias = "bond")]
    pub(crate) link_aggregation: Option<Bond>,
    pub(crate) vlan: Option<Vlan>,
    pub(crate) bridge: Option<Bridge>,
    pub(crate) mptcp: Option<Mptcp>,
    #[serde(rename = "802.1x")]
    pub(crate) port_access: Option<PartMembers>,
    pub(crate) ethtool: Option<BTreeMap<String, PartMembers>>,
    pub(crate) ovs_db: Option<OvsDb>,
    pub(crate) patch: Option<PartMembers>,
    pub(crate) dpdk: Option<PartMembers>,
    pub(crate) hsr: Option<PartMembers>,
    pub(crate) infiniband: Option<PartMembers>,
    pub(crate) ip_tunnel: Option<PartMembers>,
    pub(crate) ipvlan: Option<PartMembers>,
    pub(crate) libreswan: Option<PartMembers>,
    pub(crate) mac_vlan: Option<PartMembers>,
    pub(crate) mac_vtap: Option<PartMembers>,
    pub(crate) macsec: Option<PartMembers>,
    pub(crate) veth: Option<PartMembers>,
    pub(crate) vrf: Option<PartMembers>,
    pub(crate) vxlan: Option<PartMembers>,
    /// Place in the list; none of an interface that others imply.
    #[serde(skip)]
    pub(crate) index: Option<usize>,
    // Names beside the first one, which nmstate leaves out of keyfiles.
    #[serde(rename = "alt-names")]
    _alt_names: Option<Value>,
    // Reports of a running system, which nmstate ignores.
    #[serde(rename = "driver")]
    _driver: Option<Value>,
    #[serde(rename = "min-mtu")]
    _min_mtu: Option<Value>,
    #[serde(rename = "max-mtu")]
    _max_mtu: Option<Value>,
    pub(crate) permanent_mac_address: Option<String>,
}

impl Interface {
    /// An interface that only others name.
    pub(crate) fn unlisted(name: String, kind: InterfaceKind) -> Self {
        Self {
            name,
            kind,
            ..Self::default()
        }
    }

    /// Members that belong to one kind of interface each.
    pub(crate) fn parts(&self) -> [(&'static str, Option<&PartMembers>); 10] {
        [
            ("hsr", self.hsr.as_ref()),
            ("infiniband", self.infiniband.as_ref()),
            ("ip-tunnel", self.ip_tunnel.as_ref()),
            ("ipvlan", self.ipvlan.as_ref()),
            ("mac-vlan", self.mac_vlan.as_ref()),
            ("mac-vtap", self.mac_vtap.as_ref()),
            ("macsec", self.macsec.as_ref()),
            ("veth", self.veth.as_ref()),
            ("vrf", self.vrf.as_ref()),
            ("vxlan", self.vxlan.as_ref()),
        ]
    }
}

/// Multipath TCP.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Mptcp {
    pub(crate) address_flags: Option<Value>,
}

/// Keys of an entry in the database of Open vSwitch.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OvsDb {
    pub(crate) external_ids: PartMembers,
    pub(crate) other_config: PartMembers,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lldp {
    pub(crate) enabled: Flag,
    // A report of a running system.
    #[serde(rename = "neighbors")]
    _neighbors: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum WaitIp {
    #[serde(rename = "any")]
    Any,
    #[serde(rename = "ipv4")]
    Ipv4,
    #[serde(rename = "ipv6")]
    Ipv6,
    #[serde(rename = "ipv4+ipv6")]
    Both,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Ethernet {
    #[serde(alias = "auto-neg")]
    pub(crate) auto_negotiation: Option<Flag>,
    pub(crate) speed: Option<Integer<u32>>,
    pub(crate) duplex: Option<Duplex>,
    pub(crate) sr_iov: Option<PartMembers>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Duplex {
    Full,
    Half,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Bond {
    pub(crate) mode: Option<Value>,
    #[serde(default)]
    pub(crate) options: BTreeMap<String, Value>,
    #[serde(alias = "ports")]
    pub(crate) port: Option<Vec<String>>,
    pub(crate) ports_config: Option<Vec<BondPort>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct BondPort {
    pub(crate) name: String,
    pub(crate) priority: Option<Integer<i32>>,
    pub(crate) queue_id: Option<Integer<u16>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Vlan {
    pub(crate) base_iface: String,
    pub(crate) id: Integer<u16>,
    pub(crate) protocol: Option<VlanProtocol>,
    pub(crate) registration_protocol: Option<RegistrationProtocol>,
    #[serde(default)]
    pub(crate) ingress_qos_map: Vec<PriorityPair>,
    #[serde(default)]
    pub(crate) egress_qos_map: Vec<PriorityPair>,
    pub(crate) reorder_headers: Option<Flag>,
    pub(crate) loose_binding: Option<Flag>,
}

/// Protocol that announces the VLAN to switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RegistrationProtocol {
    Gvrp,
    Mvrp,
    None,
}

/// A priority of packets, and that of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PriorityPair {
    pub(crate) from: Integer<u32>,
    pub(crate) to: Integer<u32>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) enum VlanProtocol {
    #[serde(rename = "802.1q")]
    Dot1Q,
    #[serde(rename = "802.1ad")]
    Dot1Ad,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Bridge {
    #[serde(rename = "allow-extra-ports")]
    _allow_extra_ports: Option<Flag>,
    #[serde(rename = "allow-extra-patch-ports")]
    _allow_extra_patch_ports: Option<Flag>,
    #[serde(default)]
    pub(crate) options: BTreeMap<String, Value>,
    #[serde(alias = "ports")]
    pub(crate) port: Option<Vec<BridgePort>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct BridgePort {
    pub(crate) name: String,
    pub(crate) stp_hairpin_mode: Option<Flag>,
    pub(crate) stp_path_cost: Option<Integer<u32>>,
    pub(crate) stp_priority: Option<Integer<u16>>,
    pub(crate) vlan: Option<PortVlan>,
    /// The bond in a port of Open vSwitch.
    #[serde(alias = "bond")]
    pub(crate) link_aggregation: Option<PartMembers>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct PortVlan {
    pub(crate) enable_native: Option<Flag>,
    pub(crate) mode: Option<PortVlanMode>,
    pub(crate) tag: Option<Integer<u16>>,
    pub(crate) trunk_tags: Option<Vec<TrunkTag>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PortVlanMode {
    Trunk,
    Access,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TrunkTag {
    Id(Integer<u16>),
    IdRange {
        min: Integer<u16>,
        max: Integer<u16>,
    },
}

/// Members that both families share.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct Ipv4 {
    pub(crate) enabled: Flag,
    pub(crate) dhcp: Flag,
    pub(crate) dhcp_client_id: Option<String>,
    pub(crate) address: Vec<StaticAddress>,
    pub(crate) auto_dns: Option<Flag>,
    pub(crate) auto_gateway: Option<Flag>,
    pub(crate) auto_routes: Option<Flag>,
    pub(crate) auto_route_table_id: Option<Integer<u32>>,
    pub(crate) auto_route_metric: Option<Integer<u32>>,
    pub(crate) dhcp_send_hostname: Option<Flag>,
    pub(crate) dhcp_custom_hostname: Option<String>,
    pub(crate) forwarding: Option<Flag>,
    pub(crate) prefix_route_metric: Option<Integer<u32>>,
    #[serde(rename = "allow-extra-address")]
    _allow_extra_address: Option<Flag>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct Ipv6 {
    pub(crate) enabled: Flag,
    pub(crate) dhcp: Flag,
    pub(crate) autoconf: Flag,
    pub(crate) dhcp_duid: Option<String>,
    pub(crate) address: Vec<StaticAddress>,
    pub(crate) addr_gen_mode: Option<AddressGeneration>,
    pub(crate) auto_dns: Option<Flag>,
    pub(crate) auto_gateway: Option<Flag>,
    pub(crate) auto_routes: Option<Flag>,
    pub(crate) auto_route_table_id: Option<Integer<u32>>,
    pub(crate) auto_route_metric: Option<Integer<u32>>,
    pub(crate) dhcp_send_hostname: Option<Flag>,
    pub(crate) dhcp_custom_hostname: Option<String>,
    pub(crate) token: Option<String>,
    #[serde(rename = "allow-extra-address")]
    _allow_extra_address: Option<Flag>,
}

impl Ipv4 {
    pub(crate) fn of_address(address: StaticAddress) -> Self {
        Self {
            enabled: Flag(true),
            address: vec![address],
            ..Self::default()
        }
    }
}

impl Ipv6 {
    pub(crate) fn of_address(address: StaticAddress) -> Self {
        Self {
            enabled: Flag(true),
            address: vec![address],
            ..Self::default()
        }
    }
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AddressGeneration {
    Eui64,
    StablePrivacy,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct StaticAddress {
    pub(crate) ip: IpAddr,
    pub(crate) prefix_length: Integer<u8>,
    /// How long it is valid: "forever" where no server leased it.
    #[serde(alias = "valid-left", alias = "valid-lft")]
    pub(crate) valid_life_time: Option<String>,
    #[serde(
        rename = "preferred-life-time",
        alias = "preferred-left",
        alias = "preferred-lft"
    )]
    _preferred_life_time: Option<String>,
    #[serde(rename = "protocol")]
    _protocol: Option<Value>,
    #[serde(rename = "mptcp-flags")]
    _mptcp_flags: Option<Value>,
}

impl StaticAddress {
    pub(crate) fn new(ip: IpAddr, prefix_length: u8) -> Self {
        Self {
            ip,
            prefix_length: Integer(prefix_length),
            valid_life_time: None,
            _preferred_life_time: None,
            _protocol: None,
            _mptcp_flags: None,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct StaticRoute {
    pub(crate) state: Option<RouteState>,
    pub(crate) destination: Option<String>,
    pub(crate) next_hop_interface: Option<String>,
    pub(crate) next_hop_address: Option<IpAddr>,
    pub(crate) metric: Option<Integer<i64>>,
    pub(crate) table_id: Option<Integer<u32>>,
    pub(crate) weight: Option<Integer<u16>>,
    pub(crate) route_type: Option<RouteType>,
    pub(crate) vrf_name: Option<String>,
    pub(crate) source: Option<IpAddr>,
    pub(crate) cwnd: Option<Integer<u32>>,
    pub(crate) initcwnd: Option<Integer<u32>>,
    pub(crate) initrwnd: Option<Integer<u32>>,
    pub(crate) mtu: Option<Integer<u32>>,
    pub(crate) lock_mtu: Option<Flag>,
    pub(crate) quickack: Option<Flag>,
    pub(crate) advmss: Option<Integer<u32>>,
}

/// Routes and rules that drop packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RouteType {
    Blackhole,
    Unreachable,
    Prohibit,
}

impl RouteType {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Blackhole => "blackhole",
            Self::Unreachable => "unreachable",
            Self::Prohibit => "prohibit",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RouteState {
    Absent,
    Ignore,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RouteRule {
    pub(crate) state: Option<RouteState>,
    pub(crate) family: Option<Family>,
    pub(crate) ip_from: Option<String>,
    pub(crate) ip_to: Option<String>,
    pub(crate) priority: Option<Integer<i64>>,
    pub(crate) route_table: Option<Integer<u32>>,
    pub(crate) fwmark: Option<Integer<u32>>,
    pub(crate) fwmask: Option<Integer<u32>>,
    pub(crate) iif: Option<String>,
    pub(crate) action: Option<RouteType>,
    #[serde(alias = "suppress_prefixlength")]
    pub(crate) suppress_prefix_length: Option<Integer<u32>>,
}

/// Family of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum Family {
    #[serde(rename = "ipv4")]
    V4,
    #[serde(rename = "ipv6")]
    V6,
}

impl Family {
    pub(crate) fn of(address: IpAddr) -> Self {
        if address.is_ipv6() {
            Self::V6
        } else {
            Self::V4
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Resolver {
    pub(crate) server: Vec<String>,
    pub(crate) search: Vec<String>,
    pub(crate) options: Vec<String>,
}
