//! Step `connectivity-check`: which hosts of the cluster this host reaches, and by which of its links.
//!
//! Source: assisted-installer-agent, src/connectivity_check.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream;
use ipnet::IpNet;
use model::steps::{
    ConnectivityCheckHost, ConnectivityRemoteHost, ConnectivityReport, L2Connectivity,
    L3Connectivity, MtuReport,
};

use super::context::{StepContext, StepOutcome, only};
use crate::links::{LinkTable, NetworkLink};
use crate::probes::icmp::{self, EchoOptions};
use crate::probes::{Neighbours, arp, mac_text, ndp};

/// Probes at the same time.
const CONCURRENCY: usize = 64;
const PINGS: u16 = 10;
/// Links with this size need no probe of it. Units: bytes.
const USUAL_MTU: u32 = 1500;
const MTU_PINGS: u16 = 3;
/// Headers of IP. Units: bytes.
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;

/// One result.
enum ProbeFinding {
    Link(Vec<L2Connectivity>),
    Network(L3Connectivity),
    Mtu(MtuReport),
}

pub(super) async fn run(
    context: &StepContext,
    arguments: &[String],
) -> Result<StepOutcome, String> {
    let hosts: Vec<ConnectivityCheckHost> = only(arguments)?;
    let table = LinkTable::read(&context.files)
        .await
        .map_err(|error| error.chain())?;
    let links: Arc<Vec<NetworkLink>> = Arc::new(table.outgoing().cloned().collect());
    let mut probes = Vec::new();
    for (index, host) in hosts.iter().enumerate() {
        let macs: BTreeSet<String> = host.nics.iter().map(|nic| nic.mac.to_lowercase()).collect();
        let macs = Arc::new(macs);
        for address in addresses(host) {
            let probe = probe(address, Arc::clone(&macs), Arc::clone(&links));
            probes.push(async move { (index, probe.await) });
        }
    }
    let mut remote_hosts: Vec<ConnectivityRemoteHost> = hosts
        .iter()
        .map(|host| ConnectivityRemoteHost {
            host_id: host.host_id,
            ..ConnectivityRemoteHost::default()
        })
        .collect();
    let mut findings = stream::iter(probes).buffer_unordered(CONCURRENCY);
    while let Some((index, findings)) = findings.next().await {
        let host = &mut remote_hosts[index];
        for finding in findings {
            match finding {
                ProbeFinding::Link(found) => host.l2_connectivity.extend(found),
                ProbeFinding::Network(found) => host.l3_connectivity.push(found),
                ProbeFinding::Mtu(found) => host.mtu_report.push(found),
            }
        }
    }
    for host in &mut remote_hosts {
        let key = |found: &L2Connectivity| {
            (
                found.remote_ip_address.clone(),
                found.remote_mac.clone(),
                found.outgoing_nic.clone(),
            )
        };
        host.l2_connectivity.sort_by_key(key);
        host.l3_connectivity
            .sort_by(|a, b| a.remote_ip_address.cmp(&b.remote_ip_address));
        let key = |found: &MtuReport| (found.remote_ip_address.clone(), found.outgoing_nic.clone());
        host.mtu_report.sort_by_key(key);
    }
    remote_hosts.sort_by_key(|host| host.host_id);
    StepOutcome::json(&ConnectivityReport { remote_hosts })
}

/// The addresses of a host, without the lengths of their prefixes.
fn addresses(host: &ConnectivityCheckHost) -> impl Iterator<Item = IpAddr> {
    host.nics
        .iter()
        .flat_map(|nic| &nic.ip_addresses)
        .filter_map(|text| text.split('/').next()?.parse().ok())
}

async fn probe(
    address: IpAddr,
    macs: Arc<BTreeSet<String>>,
    links: Arc<Vec<NetworkLink>>,
) -> Vec<ProbeFinding> {
    let mut findings = vec![ProbeFinding::Network(network(address).await)];
    for link in links.iter() {
        if let Some(source) = source_in_network_of(link, address) {
            findings.push(ProbeFinding::Link(
                neighbours(address, source, &macs, link).await,
            ));
        }
        if link.mtu != USUAL_MTU
            && link
                .usable_addresses()
                .any(|own| own.addr().is_ipv6() == address.is_ipv6())
        {
            findings.extend(mtu(address, link).await.map(ProbeFinding::Mtu));
        }
    }
    findings
}

/// The own address of the network that `address` is in.
pub(super) fn source_in_network_of(link: &NetworkLink, address: IpAddr) -> Option<IpAddr> {
    let own = link
        .usable_addresses()
        .find(|own: &&IpNet| own.contains(&address))?;
    Some(own.addr())
}

async fn network(address: IpAddr) -> L3Connectivity {
    let options = EchoOptions {
        count: PINGS,
        data: 56,
        link: None,
        is_whole: false,
    };
    let mut found = L3Connectivity {
        remote_ip_address: address.to_string(),
        ..L3Connectivity::default()
    };
    match icmp::echo(address, options).await {
        Ok(report) if report.received > 0 => {
            found.successful = true;
            found.packet_loss_percentage = report.loss();
            found.average_rtt_ms = report.average.as_secs_f64() * 1000.0;
        }
        Ok(_) => {}
        Err(error) => tracing::info!(%address, %error, "no echo"),
    }
    found
}

/// Each hardware address that answers: one of another machine is a conflict, and not successful.
async fn neighbours(
    address: IpAddr,
    source: IpAddr,
    macs: &BTreeSet<String>,
    link: &NetworkLink,
) -> Vec<L2Connectivity> {
    let found = match (address, source) {
        (IpAddr::V4(address), IpAddr::V4(source)) => arp::probe(link, source, &[address]).await,
        (IpAddr::V6(address), IpAddr::V6(source)) => ndp::probe(link, source, address).await,
        _ => return Vec::new(),
    };
    let found = found.unwrap_or_else(|error| {
        tracing::info!(%address, link = link.name, %error, "no neighbour");
        Neighbours::new()
    });
    let connectivity = |mac: String| L2Connectivity {
        outgoing_nic: link.name.clone(),
        outgoing_ip_address: source.to_string(),
        remote_ip_address: address.to_string(),
        successful: macs.contains(&mac),
        remote_mac: mac,
    };
    found
        .into_values()
        .flatten()
        .map(|mac| connectivity(mac_text(mac)))
        .collect()
}

/// Whether packets of the link's size arrive whole; none when none arrives anyway.
async fn mtu(address: IpAddr, link: &NetworkLink) -> Option<MtuReport> {
    let header = if address.is_ipv6() {
        IPV6_HEADER
    } else {
        IPV4_HEADER
    };
    let largest = (link.mtu as usize).checked_sub(header + icmp::HEADER)?;
    let options = |data: usize| EchoOptions {
        count: MTU_PINGS,
        data,
        link: Some(&link.name),
        is_whole: true,
    };
    let small = icmp::echo(address, options(56)).await.ok()?;
    if small.received == 0 {
        return None;
    }
    let large = icmp::echo(address, options(largest)).await;
    Some(MtuReport {
        outgoing_nic: link.name.clone(),
        remote_ip_address: address.to_string(),
        mtu_successful: large.is_ok_and(|report| report.received > 0),
    })
}
