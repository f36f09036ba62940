//! Step `verify-vips`: whether another host answers for an address that the cluster is to have.
//!
//! Source: assisted-installer-agent, src/vips_verifier.

use std::net::IpAddr;

use model::network::VipVerification;
use model::steps::{VerifiedVip, VerifyVip};

use super::connectivity::source_in_network_of;
use super::context::{StepContext, StepOutcome, only};
use crate::links::LinkTable;
use crate::probes::icmp::{self, EchoOptions};
use crate::probes::{arp, ndp};

pub(super) async fn run(
    context: &StepContext,
    arguments: &[String],
) -> Result<StepOutcome, String> {
    let vips: Vec<VerifyVip> = only(arguments)?;
    let table = LinkTable::read(&context.files)
        .await
        .map_err(|error| error.chain())?;
    let mut verified = Vec::new();
    for vip in vips {
        let address: IpAddr = vip
            .vip
            .parse()
            .map_err(|error| format!("VIP {:?}: {error}", vip.vip))?;
        let is_used = is_used(address, &table)
            .await
            .map_err(|error| format!("probing VIP {address}: {error}"))?;
        let verification = if is_used {
            VipVerification::Failed
        } else {
            VipVerification::Succeeded
        };
        verified.push(VerifiedVip {
            vip: vip.vip,
            vip_type: vip.vip_type,
            verification: Some(verification),
        });
    }
    StepOutcome::json(&verified)
}

/// By its neighbours where the host has the network, else by an echo.
async fn is_used(address: IpAddr, table: &LinkTable) -> std::io::Result<bool> {
    for link in table.outgoing() {
        let found = match (address, source_in_network_of(link, address)) {
            (IpAddr::V4(address), Some(IpAddr::V4(source))) => {
                arp::probe(link, source, &[address]).await?
            }
            (IpAddr::V6(address), Some(IpAddr::V6(source))) => {
                ndp::probe(link, source, address).await?
            }
            _ => continue,
        };
        return Ok(!found.is_empty());
    }
    let options = EchoOptions {
        count: 3,
        data: 56,
        link: None,
        is_whole: false,
    };
    match icmp::echo(address, options).await {
        Ok(report) => Ok(report.received > 0),
        // Without a route no host is reached there.
        Err(error) if error.kind() == std::io::ErrorKind::NetworkUnreachable => Ok(false),
        Err(error) => Err(error),
    }
}
