//! Step `free-network-addresses`: addresses that no host of a network answers for.
//!
//! Source: assisted-installer-agent, src/free_addresses, which scans by nmap.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::Ipv4Net;
use model::steps::FreeNetworkAddresses;

use super::connectivity::source_in_network_of;
use super::context::{StepContext, StepOutcome, only};
use crate::links::LinkTable;
use crate::probes::arp;

/// Longest list of a network.
const MAX_ADDRESSES: usize = 8000;
/// Largest part of a network that is scanned at once, by the length of its prefix.
const MAX_PART: u8 = 22;

pub(super) async fn run(
    context: &StepContext,
    arguments: &[String],
) -> Result<StepOutcome, String> {
    let networks: Vec<Ipv4Net> = only(arguments)?;
    let table = LinkTable::read(&context.files)
        .await
        .map_err(|error| error.chain())?;
    let mut found = Vec::new();
    for network in networks {
        found.push(scan(network, &table).await?);
    }
    StepOutcome::json(&found)
}

async fn scan(network: Ipv4Net, table: &LinkTable) -> Result<FreeNetworkAddresses, String> {
    if network != network.trunc() {
        return Err(format!(
            "{network} is no network, its first address is {}",
            network.network()
        ));
    }
    let first = IpAddr::V4(network.network());
    let own = table
        .outgoing()
        .find_map(|link| match source_in_network_of(link, first)? {
            IpAddr::V4(source) => Some((link, source)),
            IpAddr::V6(_) => None,
        });
    let (link, source) = own.ok_or_else(|| format!("this host has no address in {network}"))?;
    let parts = network
        .subnets(network.prefix_len().max(MAX_PART))
        .map_err(|error| error.to_string())?;
    let mut free_addresses = Vec::new();
    for part in parts {
        if free_addresses.len() >= MAX_ADDRESSES {
            break;
        }
        let addresses = addresses_of(part);
        let neighbours = arp::probe(link, source, &addresses)
            .await
            .map_err(|error| format!("scanning {part}: {error}"))?;
        let is_free = |address: &Ipv4Addr| {
            *address != source && !neighbours.contains_key(&IpAddr::V4(*address))
        };
        free_addresses.extend(
            addresses
                .into_iter()
                .filter(is_free)
                .map(|address| address.to_string()),
        );
    }
    free_addresses.truncate(MAX_ADDRESSES);
    Ok(FreeNetworkAddresses {
        network: network.to_string(),
        free_addresses,
    })
}

/// All addresses of a part, with the first and the last, as the peer has them.
fn addresses_of(part: Ipv4Net) -> Vec<Ipv4Addr> {
    let (first, last) = (u32::from(part.network()), u32::from(part.broadcast()));
    (first..=last).map(Ipv4Addr::from).collect()
}
