//! Steps that check the network of the machine.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ipnet::{IpNet, Ipv4Net};
use rand::RngExt as _;
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;
use uuid::Uuid;

use super::arguments::only_json;
use super::reply::StepReply;
use crate::install_request::quorum;
use crate::machine::Machine;
use crate::world::{ELSEWHERE, NodePhase};
use crate::{HostFault, Nic};

/// The agent scans at most networks of this many host bits and reports at most this many addresses each.
const SCAN_HOST_BITS: u8 = 10;
const FREE_ADDRESSES_LIMIT: usize = 8000;

#[derive(Deserialize)]
struct RemoteHost {
    host_id: Uuid,
    nics: Option<Vec<RemoteNic>>,
}

#[derive(Deserialize)]
struct RemoteNic {
    mac: Option<String>,
    ip_addresses: Option<Vec<IpAddr>>,
}

pub(super) fn connectivity(machine: &Arc<Machine>, args: &[String]) -> Result<StepReply, String> {
    let hosts: Vec<RemoteHost> = only_json(args)?;
    let reports: Vec<Value> = hosts
        .iter()
        .map(|host| remote_report(machine, host))
        .collect();
    Ok(StepReply::json(&json!({ "remote_hosts": reports })))
}

fn remote_report(machine: &Machine, host: &RemoteHost) -> Value {
    let own = &machine.hardware;
    let (mut l2, mut l3, mut mtu) = (Vec::new(), Vec::new(), Vec::new());
    for nic in host.nics.iter().flatten() {
        for address in nic.ip_addresses.iter().flatten().copied() {
            let path = own.path_to(address);
            let holder = machine
                .world
                .holder(address, own.index)
                .filter(|_| path.is_some() && !own.has(HostFault::Network));
            let outgoing = path.map_or("", |(nic, _)| nic.name.as_str());
            if let (Some((_, theirs)), Some((link, source))) = (holder, own.link_to(address)) {
                l2.push(json!({
                    "outgoing_nic": link.name,
                    "outgoing_ip_address": source.to_string(),
                    "remote_ip_address": address.to_string(),
                    "remote_mac": theirs.mac,
                    // A second machine with the same address shows as another MAC than the server expects.
                    "successful": nic.mac.as_ref().is_none_or(|mac| mac.eq_ignore_ascii_case(&theirs.mac)),
                }));
            }
            let rtt = if holder.is_some() {
                rand::rng().random_range(0.18..0.62_f64)
            } else {
                0.0
            };
            l3.push(json!({
                "outgoing_nic": outgoing,
                "remote_ip_address": address.to_string(),
                "successful": holder.is_some(),
                "average_rtt_ms": (rtt * 1000.0).round() / 1000.0,
                "packet_loss_percentage": if holder.is_some() { 0.0 } else { 100.0 },
            }));
            // Packets of the full length arrive if the other end accepts them.
            let fits = |(_, theirs): (_, &Nic)| path.is_some_and(|(nic, _)| nic.mtu <= theirs.mtu);
            mtu.push(json!({
                "outgoing_nic": outgoing,
                "remote_ip_address": address.to_string(),
                "mtu_successful": holder.is_some_and(fits),
            }));
        }
    }
    json!({ "host_id": host.host_id, "l2_connectivity": l2, "l3_connectivity": l3, "mtu_report": mtu })
}

pub(super) fn free_addresses(machine: &Arc<Machine>, args: &[String]) -> Result<StepReply, String> {
    let networks: Vec<Ipv4Net> = only_json(args)?;
    let mut reports = Vec::new();
    for network in networks {
        if 32 - network.prefix_len() > SCAN_HOST_BITS {
            return Err(format!("{network} is too large to be scanned"));
        }
        // Only the machine's own network can be scanned.
        let mut own = machine.hardware.addresses();
        let is_near = own.any(|address| IpNet::V4(network).contains(&address));
        let free = network
            .hosts()
            .filter(|address| is_near && !machine.world.is_taken(IpAddr::V4(*address)));
        let free: Vec<Ipv4Addr> = free.take(FREE_ADDRESSES_LIMIT).collect();
        reports.push(json!({ "network": network, "free_addresses": free }));
    }
    Ok(StepReply::json(&Value::Array(reports)))
}

#[derive(Deserialize)]
struct DhcpRequest {
    interface: String,
    api_vip_mac: String,
    ingress_vip_mac: String,
    #[serde(default)]
    api_vip_lease: String,
    #[serde(default)]
    ingress_vip_lease: String,
}

pub(super) fn dhcp_lease(machine: &Arc<Machine>, args: &[String]) -> Result<StepReply, String> {
    let request: DhcpRequest = only_json(args)?;
    let mut nics = machine.hardware.nics.iter();
    let own = nics.find(|nic| nic.name == request.interface);
    let mut networks = own.into_iter().flat_map(|nic| &nic.addresses);
    let Some(network) = networks.find_map(|one| match one {
        IpNet::V4(network) => Some(network.trunc()),
        IpNet::V6(_) => None,
    }) else {
        return Err(format!("no DHCP server answers on {:?}", request.interface));
    };
    let lease = |name: &str, mac: &str, last: &str| {
        let leased = machine.world.lease(network, mac, fixed_address(last));
        let address = leased.ok_or_else(|| format!("no address is free for {mac}"))?;
        Ok::<_, String>((address, lease_text(name, address)))
    };
    let (api, api_lease) = lease("api", &request.api_vip_mac, &request.api_vip_lease)?;
    let (ingress, ingress_lease) = lease(
        "ingress",
        &request.ingress_vip_mac,
        &request.ingress_vip_lease,
    )?;
    Ok(StepReply::json(&json!({
        "api_vip_address": api, "api_vip_lease": api_lease,
        "ingress_vip_address": ingress, "ingress_vip_lease": ingress_lease,
    })))
}

/// A lease in the format of dhclient.leases(5).
fn lease_text(interface: &str, address: Ipv4Addr) -> String {
    format!(
        "lease {{\n  interface \"{interface}\";\n  fixed-address {address};\n  option dhcp-lease-time 3600;\n  \
         renew 4 2026/01/01 00:30:00;\n  rebind 4 2026/01/01 00:50:00;\n  expire 4 2026/01/01 01:00:00;\n}}\n"
    )
}

/// The address of the last lease.
fn fixed_address(lease: &str) -> Option<Ipv4Addr> {
    let (_, rest) = lease.split_once("fixed-address ")?;
    rest.split_once(';')?.0.parse().ok()
}

#[derive(Deserialize)]
struct NtpRequest {
    ntp_source: Option<String>,
}

pub(super) fn ntp(machine: &Arc<Machine>, args: &[String]) -> Result<StepReply, String> {
    let request: NtpRequest = only_json(args)?;
    let own = machine
        .hardware
        .time_source
        .map(|source| source.to_string());
    let asked = request.ntp_source.unwrap_or_default();
    let asked = asked
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    let mut is_synced = false;
    let sources: Vec<Value> = own
        .iter()
        .map(String::as_str)
        .chain(asked)
        .map(|name| {
            let state = if !answers(machine, name) {
                "unreachable"
            } else if is_synced {
                "combined"
            } else {
                "synced"
            };
            is_synced |= state == "synced";
            json!({ "source_name": name, "source_state": state })
        })
        .collect();
    Ok(StepReply::json(&json!({ "ntp_sources": sources })))
}

/// Whether a time source answers: its name resolves, and packets to its address have a way out.
fn answers(machine: &Machine, source: &str) -> bool {
    let hardware = &machine.hardware;
    let address = source.parse().ok().or_else(|| {
        let found = machine.world.resolve(source).unwrap_or(ELSEWHERE);
        hardware.has_dns.then_some(found)
    });
    let has_way = address.is_some_and(|address| hardware.path_to(address).is_some());
    has_way && !hardware.has(HostFault::Ntp)
}

#[derive(Deserialize)]
struct DomainsRequest {
    domains: Vec<Domain>,
}

#[derive(Deserialize)]
struct Domain {
    domain_name: String,
}

pub(super) fn domains(machine: &Arc<Machine>, args: &[String]) -> Result<StepReply, String> {
    let request: DomainsRequest = only_json(args)?;
    let resolutions: Vec<Value> = request
        .domains
        .iter()
        .map(|domain| {
            let found = machine.world.resolve(&domain.domain_name);
            let found = found.filter(|_| machine.hardware.has_dns);
            let of_family = |is_v4| -> Vec<IpAddr> { found.into_iter().filter(|one| one.is_ipv4() == is_v4).collect() };
            json!({ "domain_name": domain.domain_name, "ipv4_addresses": of_family(true), "ipv6_addresses": of_family(false), "cnames": [] })
        })
        .collect();
    Ok(StepReply::json(&json!({ "resolutions": resolutions })))
}

#[derive(Deserialize)]
struct Vip {
    vip: IpAddr,
    vip_type: String,
}

pub(super) fn verify_vips(machine: &Arc<Machine>, args: &[String]) -> Result<StepReply, String> {
    let vips: Vec<Vip> = only_json(args)?;
    let mut verified = Vec::new();
    for vip in vips {
        if !matches!(vip.vip_type.as_str(), "api" | "ingress") {
            return Err(format!("{:?} is no kind of VIP", vip.vip_type));
        }
        let verification = if machine.world.is_free(vip.vip) {
            "succeeded"
        } else {
            "failed"
        };
        verified.push(
            json!({ "vip": vip.vip, "vip_type": vip.vip_type, "verification": verification }),
        );
    }
    Ok(StepReply::json(&Value::Array(verified)))
}

#[derive(Deserialize)]
struct TangRequest {
    tang_servers: String,
}

#[derive(Deserialize)]
struct TangServer {
    url: Url,
    #[serde(default)]
    thumbprint: String,
}

pub(super) fn tang(args: &[String]) -> Result<StepReply, String> {
    let request: TangRequest = only_json(args)?;
    let servers: Vec<TangServer> = serde_json::from_str(&request.tang_servers)
        .map_err(|e| format!("tang_servers {:?} does not fit: {e}", request.tang_servers))?;
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let responses: Vec<Value> = servers
        .iter()
        .map(|server| {
            let keys = json!({ "keys": [{ "alg": "ECMR", "crv": "P-521", "kty": "EC", "key_ops": ["deriveKey"] }] });
            let signature = json!({ "protected": encode(&json!({ "alg": "ES512", "cty": "jwk-set+json" })), "signature": server.thumbprint });
            json!({ "tang_url": server.url, "payload": encode(&keys), "signatures": [signature] })
        })
        .collect();
    Ok(StepReply::json(
        &json!({ "is_success": !servers.is_empty(), "tang_server_response": responses }),
    ))
}

#[derive(Deserialize)]
struct ApiVipRequest {
    url: Url,
}

/// Whether the machine config server of a running cluster answers.
pub(super) fn api_vip(machine: &Arc<Machine>, args: &[String]) -> Result<StepReply, String> {
    let request: ApiVipRequest = only_json(args)?;
    let host = request.url.host_str().unwrap_or_default();
    let is_known = host.parse::<IpAddr>().is_ok() || machine.world.resolve(host).is_some();
    let count = machine.world.machines().len();
    let nodes = (0..count).map(|index| machine.world.node(index));
    let is_up = nodes.filter(|node| *node == NodePhase::Ready).count() >= quorum(count);
    let error = match (is_known, is_up) {
        (false, _) => format!("dial tcp: lookup {host}: no such host"),
        (true, false) => format!("dial tcp {host}: connect: connection refused"),
        (true, true) => String::new(),
    };
    let ignition =
        json!({ "ignition": { "version": "3.2.0" }, "storage": { "files": [] } }).to_string();
    Ok(StepReply::json(&if error.is_empty() {
        json!({ "is_success": true, "url": request.url, "ignition": ignition })
    } else {
        json!({ "is_success": false, "url": request.url, "download_error": error })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::tests::{args, machine_with};

    fn output(reply: Result<StepReply, String>) -> Value {
        serde_json::from_str(&reply.unwrap().output).unwrap()
    }

    fn asked(machine: &Machine, index: usize) -> String {
        let other = &machine.world.machines()[index];
        json!([{ "host_id": other.host_id, "nics": [{ "name": "enp1s0", "mac": other.nics[0].mac, "ip_addresses": [other.nics[0].addresses[0].addr()] }] }]).to_string()
    }

    #[test]
    fn neighbours_are_reached_on_both_layers() {
        let machine = machine_with(&[]);
        let report = output(connectivity(&machine, &args(&[&asked(&machine, 1)])));
        let host = &report["remote_hosts"][0];
        assert_eq!(host["l2_connectivity"][0]["successful"], true);
        assert_eq!(host["l3_connectivity"][0]["packet_loss_percentage"], 0.0);
        assert!(
            host["l3_connectivity"][0]["average_rtt_ms"]
                .as_f64()
                .unwrap()
                > 0.0
        );
        assert_eq!(host["mtu_report"][0]["mtu_successful"], true);
    }

    #[test]
    fn a_machine_without_network_reaches_no_host() {
        let machine = machine_with(&[HostFault::Network]);
        let report = output(connectivity(&machine, &args(&[&asked(&machine, 1)])));
        let host = &report["remote_hosts"][0];
        assert_eq!(host["l2_connectivity"], json!([]));
        assert_eq!(host["l3_connectivity"][0]["packet_loss_percentage"], 100.0);
    }

    #[test]
    fn free_addresses_are_those_without_a_machine() {
        let report = output(free_addresses(
            &machine_with(&[]),
            &args(&["[\"192.168.126.0/24\",\"10.0.0.0/24\"]"]),
        ));
        let free = report[0]["free_addresses"].as_array().unwrap();
        assert_eq!(free.len(), 254 - 3 - 1);
        assert!(!free.contains(&json!("192.168.126.10")));
        assert_eq!(report[1]["free_addresses"], json!([]));
    }

    #[test]
    fn a_taken_vip_fails() {
        let request = r#"[{"vip":"192.168.126.100","vip_type":"api"},{"vip":"192.168.126.11","vip_type":"ingress"}]"#;
        let report = output(verify_vips(&machine_with(&[]), &args(&[request])));
        assert_eq!(report[0]["verification"], "succeeded");
        assert_eq!(report[1]["verification"], "failed");
    }

    #[test]
    fn only_known_names_resolve() {
        let request = r#"{"domains":[{"domain_name":"api.c.example.org"},{"domain_name":"validateNoWildcardDNS.c.example.org."}]}"#;
        let report = output(domains(&machine_with(&[]), &args(&[request])));
        assert_eq!(
            report["resolutions"][0]["ipv4_addresses"][0],
            "192.168.126.100"
        );
        assert_eq!(report["resolutions"][1]["ipv4_addresses"], json!([]));
    }

    #[test]
    fn time_sources_follow_the_request() {
        let report = output(ntp(
            &machine_with(&[]),
            &args(&[r#"{"ntp_source":"a.example, b.example"}"#]),
        ));
        assert_eq!(report["ntp_sources"][0]["source_state"], "synced");
        assert_eq!(report["ntp_sources"][2]["source_name"], "b.example");
        let report = output(ntp(
            &machine_with(&[HostFault::Ntp]),
            &args(&[r#"{"ntp_source":""}"#]),
        ));
        assert_eq!(report["ntp_sources"][0]["source_state"], "unreachable");
        let mut machine = machine_with(&[]);
        let hardware = Arc::make_mut(&mut Arc::get_mut(&mut machine).unwrap().hardware);
        (hardware.time_source, hardware.routes) = (None, Vec::new());
        let request = r#"{"ntp_source":"10.9.9.9,192.168.126.5"}"#;
        let report = output(ntp(&machine, &args(&[request])));
        assert_eq!(report["ntp_sources"][0]["source_state"], "unreachable");
        assert_eq!(report["ntp_sources"][1]["source_state"], "synced");
    }

    #[test]
    fn large_packets_to_a_smaller_mtu_are_lost() {
        let mut machine = machine_with(&[]);
        let request = asked(&machine, 1);
        let hardware = Arc::make_mut(&mut Arc::get_mut(&mut machine).unwrap().hardware);
        hardware.nics[0].mtu = 9000;
        let report = output(connectivity(&machine, &args(&[&request])));
        let host = &report["remote_hosts"][0];
        assert_eq!(host["mtu_report"][0]["mtu_successful"], false);
        assert_eq!(host["l3_connectivity"][0]["successful"], true);
    }

    #[test]
    fn the_api_vip_of_a_new_cluster_does_not_answer() {
        let report = output(api_vip(
            &machine_with(&[]),
            &args(&[r#"{"url":"http://api.c.example.org:22624/config/worker"}"#]),
        ));
        assert_eq!(report["is_success"], false);
        assert!(
            report["download_error"]
                .as_str()
                .unwrap()
                .contains("refused")
        );
    }

    #[test]
    fn leases_and_tang_answers_are_complete() {
        let request = r#"{"interface":"enp1s0","api_vip_mac":"00:1a:4a:00:00:01","ingress_vip_mac":"00:1a:4a:00:00:02"}"#;
        let lease = output(dhcp_lease(&machine_with(&[]), &args(&[request])));
        assert_eq!(
            (&lease["api_vip_address"], &lease["ingress_vip_address"]),
            (&json!("192.168.126.254"), &json!("192.168.126.253"))
        );
        let again = json!({
            "interface": "enp1s0", "api_vip_mac": "00:1a:4a:00:00:03", "ingress_vip_mac": "00:1a:4a:00:00:04",
            "api_vip_lease": lease["api_vip_lease"], "ingress_vip_lease": lease_text("ingress", Ipv4Addr::new(192, 168, 126, 10)),
        });
        let kept = output(dhcp_lease(&machine_with(&[]), &args(&[&again.to_string()])));
        assert_eq!(kept["api_vip_address"], "192.168.126.254");
        // The address of a machine is not leased again.
        assert_eq!(kept["ingress_vip_address"], "192.168.126.253");
        let tang_request =
            json!({ "tang_servers": r#"[{"url":"http://tang:7500","thumbprint":"x"}]"# })
                .to_string();
        assert_eq!(output(tang(&args(&[&tang_request])))["is_success"], true);
    }
}
