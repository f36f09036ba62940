//! Networks and virtual addresses of a cluster.

use std::net::IpAddr;

use ipnet::IpNet;
use model::Error;
use model::network::{ApiVip, ClusterNetwork, IngressVip, MachineNetwork, ServiceNetwork};

use super::refusal::refuse;
use crate::versions::at_least;

/// Host subnets that a cluster network must hold at the least.
const MIN_HOST_SUBNETS: u64 = 4;

/// Version of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4
    V4,
    /// IPv6
    V6,
}

/// The family of an address.
pub fn family(address: IpAddr) -> Family {
    if address.is_ipv4() {
        Family::V4
    } else {
        Family::V6
    }
}

/// Parses an address.
pub fn ip(field: &str, text: &str) -> Result<IpAddr, Error> {
    text.parse().map_err(|_| {
        refuse(
            field,
            text,
            "is not an address: write 192.168.1.10 or fd00::10",
        )
    })
}

/// Parses a CIDR; a host address is cut to the address of its network.
pub fn cidr(field: &str, text: &str) -> Result<IpNet, Error> {
    text.parse::<IpNet>().map(|net| net.trunc()).map_err(|_| {
        refuse(
            field,
            text,
            "is not a CIDR: write 192.168.1.0/24 or fd00::/64",
        )
    })
}

/// Inputs of the rules on networks.
#[derive(Debug, Clone, Copy)]
pub struct NetworkRules<'a> {
    pub version: &'a str,
    pub single_node: bool,
    pub user_managed_networking: bool,
    pub user_managed_load_balancer: bool,
    pub dhcp: bool,
    pub ipv6_support: bool,
    /// Units: hosts that the cluster has now.
    pub hosts: u64,
}

/// All networks of a cluster, parsed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkInput {
    pub cluster: Vec<(IpNet, i64)>,
    pub service: Vec<IpNet>,
    pub machine: Vec<IpNet>,
    pub api: Vec<IpAddr>,
    pub ingress: Vec<IpAddr>,
}

impl NetworkInput {
    /// Parses the wire's lists.
    pub fn read(
        cluster: &[ClusterNetwork],
        service: &[ServiceNetwork],
        machine: &[MachineNetwork],
        api: &[ApiVip],
        ingress: &[IngressVip],
    ) -> Result<Self, Error> {
        let nets = |field: &str, list: Vec<&str>| -> Result<Vec<IpNet>, Error> {
            list.into_iter()
                .enumerate()
                .map(|(index, text)| cidr(&format!("{field}[{index}].cidr"), text))
                .collect()
        };
        let cluster_nets = nets(
            "cluster_networks",
            cluster.iter().map(|net| net.cidr.as_str()).collect(),
        )?;
        Ok(Self {
            cluster: cluster_nets
                .into_iter()
                .zip(cluster.iter().map(|net| net.host_prefix))
                .collect(),
            service: nets(
                "service_networks",
                service.iter().map(|net| net.cidr.as_str()).collect(),
            )?,
            machine: nets(
                "machine_networks",
                machine.iter().map(|net| net.cidr.as_str()).collect(),
            )?,
            api: addresses("api_vips", api.iter().map(|vip| vip.ip.as_str()))?,
            ingress: addresses("ingress_vips", ingress.iter().map(|vip| vip.ip.as_str()))?,
        })
    }

    /// The rules that hold at creation and at every change.
    pub fn check(&self, rules: &NetworkRules<'_>) -> Result<(), Error> {
        self.problems(rules).next().map_or(Ok(()), Err)
    }

    /// The violations of these rules, the first one of each rule.
    pub fn problems(&self, rules: &NetworkRules<'_>) -> impl Iterator<Item = Error> {
        let dual_stack = self.is_dual_stack();
        [
            self.check_support(rules),
            self.check_masks(rules),
            self.check_overlaps(),
            vips(&self.api, &self.ingress, rules.user_managed_load_balancer),
            self.check_vip_order(rules),
            if dual_stack {
                self.check_dual_stack(rules)
            } else {
                Ok(())
            },
            self.check_vip_modes(rules),
            self.check_vips_inside(rules),
        ]
        .into_iter()
        .filter_map(Result::err)
    }

    /// Some list of networks holds both families. Virtual addresses do not decide it: they may be given first.
    /// Source: assisted-service, internal/network/utils.go, CheckIfClusterIsDualStack.
    pub fn is_dual_stack(&self) -> bool {
        self.families_by_list()
            .iter()
            .filter(|(field, _)| !field.ends_with("_vips"))
            .any(|(_, list)| list.contains(&Family::V4) && list.contains(&Family::V6))
    }

    /// Some list holds IPv6.
    pub(crate) fn has_ipv6(&self) -> bool {
        self.families_by_list()
            .iter()
            .any(|(_, list)| list.contains(&Family::V6))
    }

    fn families_by_list(&self) -> [(&'static str, Vec<Family>); 5] {
        let of_nets =
            |list: &[IpNet]| -> Vec<Family> { list.iter().map(|net| family(net.addr())).collect() };
        let of_ips =
            |list: &[IpAddr]| -> Vec<Family> { list.iter().copied().map(family).collect() };
        let cluster: Vec<IpNet> = self.cluster.iter().map(|(net, _)| *net).collect();
        [
            ("machine_networks", of_nets(&self.machine)),
            ("cluster_networks", of_nets(&cluster)),
            ("service_networks", of_nets(&self.service)),
            ("api_vips", of_ips(&self.api)),
            ("ingress_vips", of_ips(&self.ingress)),
        ]
    }

    /// Source: assisted-service, internal/cluster/validations/validations.go, ValidateIPAddressFamily.
    fn check_support(&self, rules: &NetworkRules<'_>) -> Result<(), Error> {
        if rules.ipv6_support {
            return Ok(());
        }
        for (field, list) in self.families_by_list() {
            if list.contains(&Family::V6) {
                return Err(Error::invalid(
                    field,
                    "holds an IPv6 address, which this service does not accept: use IPv4, or set IPV6_SUPPORT=true",
                ));
            }
        }
        Ok(())
    }

    /// Source: assisted-service, internal/network/cidr_validations.go, VerifyClusterOrServiceCIDR, VerifyMachineCIDR.
    fn check_masks(&self, rules: &NetworkRules<'_>) -> Result<(), Error> {
        for (index, (net, host_prefix)) in self.cluster.iter().enumerate() {
            mask(&format!("cluster_networks[{index}].cidr"), *net, 7)?;
            check_host_prefix(index, *net, *host_prefix, rules.hosts)?;
        }
        for (index, net) in self.service.iter().enumerate() {
            mask(&format!("service_networks[{index}].cidr"), *net, 7)?;
        }
        let host_bits = if rules.single_node {
            1
        } else if rules.user_managed_load_balancer {
            2
        } else {
            4
        };
        for (index, net) in self.machine.iter().enumerate() {
            mask(&format!("machine_networks[{index}].cidr"), *net, host_bits)?;
        }
        Ok(())
    }

    /// Source: assisted-service, internal/network/cidr_validations.go, VerifyClusterCIDRsNotOverlap.
    fn check_overlaps(&self) -> Result<(), Error> {
        let cluster: Vec<IpNet> = self.cluster.iter().map(|(net, _)| *net).collect();
        let lists = [
            ("machine_networks", &self.machine),
            ("cluster_networks", &cluster),
            ("service_networks", &self.service),
        ];
        for (index, (left_field, left)) in lists.iter().enumerate() {
            for (right_field, right) in lists.iter().skip(index + 1) {
                for one in *left {
                    if let Some(other) = right.iter().find(|other| overlap(one, other)) {
                        return Err(refuse(
                            right_field,
                            &other.to_string(),
                            &format!(
                                "overlaps {one} of {left_field}: choose networks that share no address"
                            ),
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// Two addresses start with IPv4 in older versions, also before the networks are dual-stack.
    fn check_vip_order(&self, rules: &NetworkRules<'_>) -> Result<(), Error> {
        for (field, list) in [("api_vips", &self.api), ("ingress_vips", &self.ingress)] {
            let starts_with_v6 = list.len() == 2 && list[0].is_ipv6();
            if starts_with_v6 && !at_least(rules.version, 4, 12) {
                return Err(Error::invalid(
                    field,
                    format!(
                        "starts with IPv6: version {} needs IPv4 first",
                        rules.version
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Source: assisted-service, internal/network/dual_stack_validations.go.
    fn check_dual_stack(&self, rules: &NetworkRules<'_>) -> Result<(), Error> {
        let lists = self.families_by_list();
        let primary = lists
            .iter()
            .find_map(|(_, list)| list.first().copied())
            .unwrap_or(Family::V4);
        for (field, list) in &lists {
            let is_vip = field.ends_with("_vips");
            // Two API addresses determine the machine networks later, by the networks of the hosts.
            let follows = *field == "machine_networks" && self.api.len() == 2;
            if (is_vip || follows) && list.is_empty() {
                continue;
            }
            let one_of_each =
                list.len() == 2 && list.contains(&Family::V4) && list.contains(&Family::V6);
            // A dual-stack cluster may have a single VIP; it belongs to the primary family then.
            let single_vip = is_vip && list.len() == 1;
            if !(one_of_each || single_vip) {
                return Err(Error::invalid(
                    *field,
                    format!(
                        "holds {} entries: a dual-stack cluster needs exactly one IPv4 and one IPv6 in it",
                        list.len()
                    ),
                ));
            }
            let first = list.first().copied().unwrap_or(primary);
            if first == Family::V6 && !at_least(rules.version, 4, 12) {
                return Err(Error::invalid(
                    *field,
                    format!(
                        "starts with IPv6: version {} needs IPv4 first",
                        rules.version
                    ),
                ));
            }
            if first != primary {
                return Err(Error::invalid(
                    *field,
                    "starts with another family than the other lists: put the same family first in all of them",
                ));
            }
        }
        Ok(())
    }

    /// Source: assisted-service, internal/cluster/validations/validations.go, validateVIPsWithUMA,
    /// ValidateVIPsWereNotSetDhcpMode.
    fn check_vip_modes(&self, rules: &NetworkRules<'_>) -> Result<(), Error> {
        // A new single-node cluster may name them: they become the address of its host.
        if rules.single_node || (self.api.is_empty() && self.ingress.is_empty()) {
            return Ok(());
        }
        let reason = if rules.user_managed_networking {
            "cannot be set with user_managed_networking: leave them out, or set it to false"
        } else if rules.dhcp {
            "cannot be set with vip_dhcp_allocation: leave them out, or set it to false"
        } else {
            return Ok(());
        };
        Err(Error::invalid("api_vips and ingress_vips", reason))
    }

    /// The addresses of a user-managed load balancer, too, are in a machine network, of which there may be several then:
    /// the installer takes others, the service that it starts refuses them.
    ///
    /// Source: assisted-service, internal/network/machine_network_cidr.go, VerifyVipsForClusterManagedLoadBalancer,
    /// VerifyVipsForUserManangedLoadBalancer.
    fn check_vips_inside(&self, rules: &NetworkRules<'_>) -> Result<(), Error> {
        if self.machine.is_empty() {
            return Ok(());
        }
        for (field, vip) in self
            .api
            .iter()
            .map(|vip| ("api_vips", vip))
            .chain(self.ingress.iter().map(|vip| ("ingress_vips", vip)))
        {
            let Some(net) = self.machine.iter().find(|net| net.contains(vip)) else {
                let list: Vec<String> = self.machine.iter().map(ToString::to_string).collect();
                let remedy = if rules.user_managed_load_balancer {
                    "add the network of the load balancer to them"
                } else {
                    "choose a free address inside"
                };
                let reason = format!(
                    "is outside of the machine networks [{}]: {remedy}",
                    list.join(", ")
                );
                return Err(refuse(field, &vip.to_string(), &reason));
            };
            if is_reserved(net, vip) {
                return Err(refuse(
                    field,
                    &vip.to_string(),
                    &format!("is the network or broadcast address of {net}: choose another one"),
                ));
            }
        }
        Ok(())
    }
}

fn addresses<'a>(field: &str, list: impl Iterator<Item = &'a str>) -> Result<Vec<IpAddr>, Error> {
    list.enumerate()
        .map(|(index, text)| ip(&format!("{field}[{index}].ip"), text))
        .collect()
}

/// Checks the numbers and families of virtual addresses.
/// Source: assisted-service, internal/cluster/validations/validations.go, ValidateClusterCreateIPAddresses.
pub fn vips(
    api: &[IpAddr],
    ingress: &[IpAddr],
    user_managed_load_balancer: bool,
) -> Result<(), Error> {
    for (field, list) in [("api_vips", api), ("ingress_vips", ingress)] {
        if list.len() > 2 {
            return Err(Error::invalid(
                field,
                format!("holds {} addresses: at most 2 are possible", list.len()),
            ));
        }
        if let [first, second] = list
            && family(*first) == family(*second)
        {
            return Err(Error::invalid(
                field,
                format!("holds {first} and {second}: two addresses must be one IPv4 and one IPv6"),
            ));
        }
    }
    if api.len() != ingress.len() {
        return Err(Error::invalid(
            "api_vips and ingress_vips",
            format!(
                "hold {} and {} addresses: give as many of the one as of the other",
                api.len(),
                ingress.len()
            ),
        ));
    }
    let common = api.iter().find(|vip| ingress.contains(vip));
    if let Some(vip) = common
        && !user_managed_load_balancer
    {
        return Err(refuse(
            "ingress_vips",
            &vip.to_string(),
            "is an API address as well: only a user-managed load balancer can serve both",
        ));
    }
    Ok(())
}

/// Source: assisted-service, internal/network/cidr_validations.go, verifySubnetCIDR.
fn mask(field: &str, net: IpNet, host_bits: u8) -> Result<(), Error> {
    let max = net.max_prefix_len() - host_bits;
    if (1..=max).contains(&net.prefix_len()) {
        return Ok(());
    }
    Err(refuse(
        field,
        &net.to_string(),
        &format!(
            "has a mask of {} bits: it should have 1 to {max}",
            net.prefix_len()
        ),
    ))
}

/// Source: assisted-service, internal/network/cidr_validations.go, VerifyNetworkHostPrefix, VerifyClusterCidrSize.
fn check_host_prefix(index: usize, net: IpNet, prefix: i64, hosts: u64) -> Result<(), Error> {
    let field = format!("cluster_networks[{index}].host_prefix");
    let max = net.max_prefix_len() - 7;
    let prefix_len = u8::try_from(prefix)
        .ok()
        .filter(|len| (1..=max).contains(len))
        .ok_or_else(|| {
            refuse(
                &field,
                &prefix.to_string(),
                &format!("should be 1 to {max}"),
            )
        })?;
    let needed = hosts.max(MIN_HOST_SUBNETS);
    let bits = u32::from(prefix_len.saturating_sub(net.prefix_len()));
    let offered = if prefix_len < net.prefix_len() {
        0
    } else {
        1u64.checked_shl(bits).unwrap_or(u64::MAX)
    };
    if offered < needed {
        return Err(refuse(
            &field,
            &prefix.to_string(),
            &format!(
                "cuts {net} into {offered} host subnets but {needed} are needed: use a longer prefix or a larger network"
            ),
        ));
    }
    Ok(())
}

fn overlap(left: &IpNet, right: &IpNet) -> bool {
    left.contains(right) || right.contains(left)
}

/// Whether an address is the network address, or the broadcast address of an IPv4 network.
fn is_reserved(net: &IpNet, address: &IpAddr) -> bool {
    net.network() == *address || (address.is_ipv4() && net.broadcast() == *address)
}

pub fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    parts.len() == 6
        && parts
            .iter()
            .all(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests;
