//! The nmstate configuration, as far as keyfiles are rendered. Unknown members are refused by name.
//!
//! Source: nmstate, rust/src/lib/{net_state,route,route_rule,dns,ip}.rs and ifaces/.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;
use serde_json::Value;

use super::options::PartMembers;
use super::scalar::{Flag, Integer};

/// A whole configuration. `hostname`, `description`, and the settings of Open vSwitch and OVN that belong to no interface
/// have no keyfile; nmstate leaves them out, too.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct NetworkState {
    #[serde(rename = "description")]
    _description: Option<String>,
    #[serde(rename = "hostname")]
    _hostname: Option<Value>,
    #[serde(rename = "ovs-db")]
    _ovs_db: Option<Value>,
    #[serde(rename = "ovn")]
    _ovn: Option<Value>,
    #[serde(default)]
    pub(super) interfaces: Vec<Interface>,
    #[serde(default)]
    pub(super) routes: Configured<Vec<StaticRoute>>,
    #[serde(default)]
    pub(super) route_rules: Configured<Vec<RouteRule>>,
    #[serde(default)]
    pub(super) dns_resolver: Configured<Resolver>,
}

/// A wanted part; the running one is information only.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Configured<T> {
    #[serde(rename = "running")]
    _running: Option<Value>,
    pub(super) config: Option<T>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum InterfaceKind {
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
    pub(super) fn word(self) -> &'static str {
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
    pub(super) fn is_controller(self) -> bool {
        matches!(
            self,
            Self::Bond | Self::Hsr | Self::LinuxBridge | Self::OvsBridge | Self::Vrf
        )
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum InterfaceState {
    #[default]
    Up,
    Down,
    Absent,
    Ignore,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Identifier {
    #[default]
    Name,
    MacAddress,
    PciAddress,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Interface {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: InterfaceKind,
    pub(super) state: InterfaceState,
    pub(super) profile_name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) identifier: Identifier,
    pub(super) mac_address: Option<String>,
    pub(super) pci_address: Option<String>,
    pub(super) copy_mac_from: Option<String>,
    pub(super) mtu: Option<Integer<u32>>,
    pub(super) ipv4: Option<Ipv4>,
    pub(super) ipv6: Option<Ipv6>,
    pub(super) controller: Option<String>,
    pub(super) accept_all_mac_addresses: Option<Flag>,
    pub(super) lldp: Option<Lldp>,
    pub(super) wait_ip: Option<WaitIp>,
    pub(super) ethernet: Option<Ethernet>,
    #[serde(alias = "bond")]
    pub(super) link_aggregation: Option<Bond>,
    pub(super) vlan: Option<Vlan>,
    pub(super) bridge: Option<Bridge>,
    pub(super) mptcp: Option<Mptcp>,
    #[serde(rename = "802.1x")]
    pub(super) port_access: Option<PartMembers>,
    pub(super) ethtool: Option<BTreeMap<String, PartMembers>>,
    pub(super) ovs_db: Option<OvsDb>,
    pub(super) patch: Option<PartMembers>,
    pub(super) dpdk: Option<PartMembers>,
    pub(super) hsr: Option<PartMembers>,
    pub(super) infiniband: Option<PartMembers>,
    pub(super) ip_tunnel: Option<PartMembers>,
    pub(super) ipvlan: Option<PartMembers>,
    pub(super) libreswan: Option<PartMembers>,
    pub(super) mac_vlan: Option<PartMembers>,
    pub(super) mac_vtap: Option<PartMembers>,
    pub(super) macsec: Option<PartMembers>,
    pub(super) veth: Option<PartMembers>,
    pub(super) vrf: Option<PartMembers>,
    pub(super) vxlan: Option<PartMembers>,
    /// Place in the list; none of an interface that others imply.
    #[serde(skip)]
    pub(super) index: Option<usize>,
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
    pub(super) permanent_mac_address: Option<String>,
}

impl Interface {
    /// An interface that only others name.
    pub(super) fn unlisted(name: String, kind: InterfaceKind) -> Self {
        Self {
            name,
            kind,
            ..Self::default()
        }
    }

    /// Members that belong to one kind of interface each.
    pub(super) fn parts(&self) -> [(&'static str, Option<&PartMembers>); 10] {
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
pub(super) struct Mptcp {
    pub(super) address_flags: Option<Value>,
}

/// Keys of an entry in the database of Open vSwitch.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct OvsDb {
    pub(super) external_ids: PartMembers,
    pub(super) other_config: PartMembers,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lldp {
    pub(super) enabled: Flag,
    // A report of a running system.
    #[serde(rename = "neighbors")]
    _neighbors: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum WaitIp {
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
pub(super) struct Ethernet {
    #[serde(alias = "auto-neg")]
    pub(super) auto_negotiation: Option<Flag>,
    pub(super) speed: Option<Integer<u32>>,
    pub(super) duplex: Option<Duplex>,
    pub(super) sr_iov: Option<PartMembers>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Duplex {
    Full,
    Half,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Bond {
    pub(super) mode: Option<Value>,
    #[serde(default)]
    pub(super) options: BTreeMap<String, Value>,
    #[serde(alias = "ports")]
    pub(super) port: Option<Vec<String>>,
    pub(super) ports_config: Option<Vec<BondPort>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct BondPort {
    pub(super) name: String,
    pub(super) priority: Option<Integer<i32>>,
    pub(super) queue_id: Option<Integer<u16>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Vlan {
    pub(super) base_iface: String,
    pub(super) id: Integer<u16>,
    pub(super) protocol: Option<VlanProtocol>,
    pub(super) registration_protocol: Option<RegistrationProtocol>,
    #[serde(default)]
    pub(super) ingress_qos_map: Vec<PriorityPair>,
    #[serde(default)]
    pub(super) egress_qos_map: Vec<PriorityPair>,
    pub(super) reorder_headers: Option<Flag>,
    pub(super) loose_binding: Option<Flag>,
}

/// Protocol that announces the VLAN to switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RegistrationProtocol {
    Gvrp,
    Mvrp,
    None,
}

/// A priority of packets, and that of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PriorityPair {
    pub(super) from: Integer<u32>,
    pub(super) to: Integer<u32>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) enum VlanProtocol {
    #[serde(rename = "802.1q")]
    Dot1Q,
    #[serde(rename = "802.1ad")]
    Dot1Ad,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Bridge {
    #[serde(rename = "allow-extra-ports")]
    _allow_extra_ports: Option<Flag>,
    #[serde(rename = "allow-extra-patch-ports")]
    _allow_extra_patch_ports: Option<Flag>,
    #[serde(default)]
    pub(super) options: BTreeMap<String, Value>,
    #[serde(alias = "ports")]
    pub(super) port: Option<Vec<BridgePort>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct BridgePort {
    pub(super) name: String,
    pub(super) stp_hairpin_mode: Option<Flag>,
    pub(super) stp_path_cost: Option<Integer<u32>>,
    pub(super) stp_priority: Option<Integer<u16>>,
    pub(super) vlan: Option<PortVlan>,
    /// The bond in a port of Open vSwitch.
    #[serde(alias = "bond")]
    pub(super) link_aggregation: Option<PartMembers>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PortVlan {
    pub(super) enable_native: Option<Flag>,
    pub(super) mode: Option<PortVlanMode>,
    pub(super) tag: Option<Integer<u16>>,
    pub(super) trunk_tags: Option<Vec<TrunkTag>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PortVlanMode {
    Trunk,
    Access,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TrunkTag {
    Id(Integer<u16>),
    IdRange {
        min: Integer<u16>,
        max: Integer<u16>,
    },
}

/// Members that both families share.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Ipv4 {
    pub(super) enabled: Flag,
    pub(super) dhcp: Flag,
    pub(super) dhcp_client_id: Option<String>,
    pub(super) address: Vec<StaticAddress>,
    pub(super) auto_dns: Option<Flag>,
    pub(super) auto_gateway: Option<Flag>,
    pub(super) auto_routes: Option<Flag>,
    pub(super) auto_route_table_id: Option<Integer<u32>>,
    pub(super) auto_route_metric: Option<Integer<u32>>,
    pub(super) dhcp_send_hostname: Option<Flag>,
    pub(super) dhcp_custom_hostname: Option<String>,
    pub(super) forwarding: Option<Flag>,
    pub(super) prefix_route_metric: Option<Integer<u32>>,
    #[serde(rename = "allow-extra-address")]
    _allow_extra_address: Option<Flag>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Ipv6 {
    pub(super) enabled: Flag,
    pub(super) dhcp: Flag,
    pub(super) autoconf: Flag,
    pub(super) dhcp_duid: Option<String>,
    pub(super) address: Vec<StaticAddress>,
    pub(super) addr_gen_mode: Option<AddressGeneration>,
    pub(super) auto_dns: Option<Flag>,
    pub(super) auto_gateway: Option<Flag>,
    pub(super) auto_routes: Option<Flag>,
    pub(super) auto_route_table_id: Option<Integer<u32>>,
    pub(super) auto_route_metric: Option<Integer<u32>>,
    pub(super) dhcp_send_hostname: Option<Flag>,
    pub(super) dhcp_custom_hostname: Option<String>,
    pub(super) token: Option<String>,
    #[serde(rename = "allow-extra-address")]
    _allow_extra_address: Option<Flag>,
}

impl Ipv4 {
    pub(super) fn of_address(address: StaticAddress) -> Self {
        Self {
            enabled: Flag(true),
            address: vec![address],
            ..Self::default()
        }
    }
}

impl Ipv6 {
    pub(super) fn of_address(address: StaticAddress) -> Self {
        Self {
            enabled: Flag(true),
            address: vec![address],
            ..Self::default()
        }
    }
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AddressGeneration {
    Eui64,
    StablePrivacy,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct StaticAddress {
    pub(super) ip: IpAddr,
    pub(super) prefix_length: Integer<u8>,
    /// How long it is valid: "forever" where no server leased it.
    #[serde(alias = "valid-left", alias = "valid-lft")]
    pub(super) valid_life_time: Option<String>,
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
    pub(super) fn new(ip: IpAddr, prefix_length: u8) -> Self {
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
pub(super) struct StaticRoute {
    pub(super) state: Option<RouteState>,
    pub(super) destination: Option<String>,
    pub(super) next_hop_interface: Option<String>,
    pub(super) next_hop_address: Option<IpAddr>,
    pub(super) metric: Option<Integer<i64>>,
    pub(super) table_id: Option<Integer<u32>>,
    pub(super) weight: Option<Integer<u16>>,
    pub(super) route_type: Option<RouteType>,
    pub(super) vrf_name: Option<String>,
    pub(super) source: Option<IpAddr>,
    pub(super) cwnd: Option<Integer<u32>>,
    pub(super) initcwnd: Option<Integer<u32>>,
    pub(super) initrwnd: Option<Integer<u32>>,
    pub(super) mtu: Option<Integer<u32>>,
    pub(super) lock_mtu: Option<Flag>,
    pub(super) quickack: Option<Flag>,
    pub(super) advmss: Option<Integer<u32>>,
}

/// Routes and rules that drop packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RouteType {
    Blackhole,
    Unreachable,
    Prohibit,
}

impl RouteType {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Blackhole => "blackhole",
            Self::Unreachable => "unreachable",
            Self::Prohibit => "prohibit",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RouteState {
    Absent,
    Ignore,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RouteRule {
    pub(super) state: Option<RouteState>,
    pub(super) family: Option<Family>,
    pub(super) ip_from: Option<String>,
    pub(super) ip_to: Option<String>,
    pub(super) priority: Option<Integer<i64>>,
    pub(super) route_table: Option<Integer<u32>>,
    pub(super) fwmark: Option<Integer<u32>>,
    pub(super) fwmask: Option<Integer<u32>>,
    pub(super) iif: Option<String>,
    pub(super) action: Option<RouteType>,
    #[serde(alias = "suppress_prefixlength")]
    pub(super) suppress_prefix_length: Option<Integer<u32>>,
}

/// Family of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum Family {
    #[serde(rename = "ipv4")]
    V4,
    #[serde(rename = "ipv6")]
    V6,
}

impl Family {
    pub(super) fn of(address: IpAddr) -> Self {
        if address.is_ipv6() {
            Self::V6
        } else {
            Self::V4
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Resolver {
    pub(super) server: Vec<String>,
    pub(super) search: Vec<String>,
    pub(super) options: Vec<String>,
}
