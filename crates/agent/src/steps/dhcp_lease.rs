//! Step `dhcp-lease-allocate`: leases the virtual addresses of a cluster.
//!
//! Source: assisted-installer-agent, src/dhcp_lease_allocate, which runs dhclient in a macvlan of the address.

use std::time::{Duration, SystemTime};

use model::steps::{DhcpAllocationRequest, DhcpAllocationResponse};

use super::context::{StepContext, StepOutcome, only};
use crate::dhcp::{DhcpClient, lease, leased_address};
use crate::links::{LinkTable, NetworkLink};
use crate::probes::parse_mac;

/// For one address.
const TIMEOUT: Duration = Duration::from_secs(28);

pub(super) async fn run(
    context: &StepContext,
    arguments: &[String],
) -> Result<StepOutcome, String> {
    let request: DhcpAllocationRequest = only(arguments)?;
    let table = LinkTable::read(&context.files)
        .await
        .map_err(|error| error.chain())?;
    let link = table
        .links
        .iter()
        .find(|link| link.name == request.interface)
        .ok_or_else(|| format!("this host has no network interface {:?}", request.interface))?;
    let (api, ingress) = futures_util::future::try_join(
        leased(link, "api", &request.api_vip_mac, &request.api_vip_lease),
        leased(
            link,
            "ingress",
            &request.ingress_vip_mac,
            &request.ingress_vip_lease,
        ),
    )
    .await?;
    StepOutcome::json(&DhcpAllocationResponse {
        api_vip_address: api.0,
        ingress_vip_address: ingress.0,
        api_vip_lease: api.1,
        ingress_vip_lease: ingress.1,
    })
}

/// The address and the lease's text. Its network interface is the one of keepalived on the nodes, which has this name.
async fn leased(
    link: &NetworkLink,
    name: &str,
    mac: &str,
    last: &str,
) -> Result<(String, String), String> {
    let address = parse_mac(mac).ok_or_else(|| format!("{name}: {mac:?} is no MAC address"))?;
    let client = DhcpClient {
        mac: address,
        host_name: format!("{}-{name}", mac.to_lowercase().replace(':', "-")),
        last: leased_address(last),
    };
    let lease = lease(link, &client, TIMEOUT).await;
    let lease = lease.map_err(|error| format!("{name}: {}", error.chain()))?;
    let text = lease.text(name, SystemTime::now().into());
    Ok((lease.address().to_string(), text))
}
