//! Step `domain-resolution`: names that the cluster needs, as this host resolves them.
//!
//! Source: assisted-installer-agent, src/domain_resolution.

use std::net::IpAddr;

use futures_util::StreamExt as _;
use futures_util::stream;
use model::steps::{
    DomainResolutionRequest, DomainResolutionResponse, DomainResolutionResponseResolutionsItem,
};
use net::resolve::Resolver;

use super::context::{StepContext, StepOutcome, only};

const CONCURRENCY: usize = 8;

pub(super) async fn run(
    context: &StepContext,
    arguments: &[String],
) -> Result<StepOutcome, String> {
    let request: DomainResolutionRequest = only(arguments)?;
    let names = request.domains.into_iter().map(|domain| domain.domain_name);
    let lookups: Vec<_> = names.map(resolve).collect();
    let results: Vec<_> = stream::iter(lookups).buffered(CONCURRENCY).collect().await;
    let problem = results.iter().find_map(|(_, problem)| problem.clone());
    context.status.check("DNS", problem);
    let resolutions = results
        .into_iter()
        .map(|(resolution, _)| resolution)
        .collect();
    StepOutcome::json(&DomainResolutionResponse { resolutions })
}

/// The addresses of a name; the service judges names without any. The problem is one of the name servers.
async fn resolve(name: String) -> (DomainResolutionResponseResolutionsItem, Option<String>) {
    // A final dot stops search domains, which this resolver does not use.
    let lookup = Resolver::system().lookup(name.trim_end_matches('.')).await;
    let mut resolution = DomainResolutionResponseResolutionsItem {
        domain_name: name,
        ..DomainResolutionResponseResolutionsItem::default()
    };
    match lookup {
        Ok(addresses) => {
            for address in addresses {
                match address {
                    IpAddr::V4(address) => resolution.ipv4_addresses.push(address.to_string()),
                    IpAddr::V6(address) => resolution.ipv6_addresses.push(address.to_string()),
                }
            }
            (resolution, None)
        }
        Err(error) if error.is_unknown() => (resolution, None),
        Err(error) => {
            tracing::warn!(name = resolution.domain_name, %error, "name not resolved");
            let problem = error.brief();
            (resolution, Some(problem))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn names_have_addresses() {
        let (found, problem) = resolve("localhost".to_owned()).await;
        assert!(
            found.ipv4_addresses.contains(&"127.0.0.1".to_owned()),
            "{found:?}"
        );
        assert_eq!(problem, None);
    }
}
