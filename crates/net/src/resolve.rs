//! Name resolution: /etc/hosts, then the name servers of /etc/resolv.conf in their order.
//!
//! The C library of our static programs queries all servers at once and trusts the first answer. In a container, only
//! the first server knows the neighbours, so that a neighbour would be unknown at random. The one invariant: a later
//! server is queried only when no earlier one gave a usable answer.

mod cache;
mod error;
mod name;
mod options;
mod query;
mod resolv_conf;
#[cfg(feature = "http-client")]
mod round_robin;
mod servers;
mod sockets;

#[cfg(feature = "http-client")]
use std::net::SocketAddr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, LazyLock};

use concurrency::WatchedFile;
use hickory_resolver::Hosts;
use hickory_resolver::lookup_ip::LookupIp;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RecordType};
#[cfg(feature = "http-client")]
use reqwest::dns::{Addrs, Resolve, Resolving};

pub use error::Error;
pub use options::ResolverOptions;

use cache::AnswerCache;
use resolv_conf::ResolvConf;
#[cfg(feature = "http-client")]
use round_robin::RoundRobin;
use servers::DeadServers;

/// A resolver. Clones share its caches.
#[derive(Debug, Clone)]
pub struct Resolver(Arc<ResolverInner>);

#[derive(Debug)]
struct ResolverInner {
    options: ResolverOptions,
    conf: WatchedFile<ResolvConf>,
    hosts: WatchedFile<Hosts>,
    cache: AnswerCache,
    dead: DeadServers,
    #[cfg(feature = "http-client")]
    round_robin: RoundRobin,
}

static SYSTEM: LazyLock<Resolver> = LazyLock::new(|| Resolver::new(ResolverOptions::default()));

impl Resolver {
    /// The resolver of the process. Errors in the system's files show at lookups.
    pub fn system() -> Self {
        SYSTEM.clone()
    }

    /// A resolver with its own files and timeouts.
    pub fn new(options: ResolverOptions) -> Self {
        Self(Arc::new(ResolverInner {
            conf: WatchedFile::awaiting(
                &options.resolv_conf,
                |text| Ok(ResolvConf::parse(&String::from_utf8_lossy(text))),
                ResolvConf::parse(""),
            ),
            hosts: WatchedFile::awaiting(
                &options.hosts,
                |text| {
                    let mut hosts = Hosts::default();
                    hosts.read_hosts_conf(String::from_utf8_lossy(text).as_bytes())?;
                    Ok(hosts)
                },
                Hosts::default(),
            ),
            cache: AnswerCache::new(options.max_age, options.absent_age),
            dead: DeadServers::default(),
            #[cfg(feature = "http-client")]
            round_robin: RoundRobin::default(),
            options,
        }))
    }

    /// The addresses of `host`, sorted (IPv4 first), without duplicates; at least one. An address, also in brackets,
    /// resolves to itself.
    ///
    /// Errors: as [`Error`]; the text has the servers and their replies.
    pub async fn lookup(&self, host: &str) -> Result<Vec<IpAddr>, Error> {
        if let Some(address) = name::literal(host) {
            return Ok(vec![address]);
        }
        let name = name::parse(host)?;
        let listed = self.listed(&name).await;
        let mut addresses = if listed.is_empty() {
            self.0.cache.answer(&name, self.query(&name)).await?
        } else {
            listed
        };
        addresses.sort_unstable();
        addresses.dedup();
        Ok(addresses)
    }

    /// Addresses of the hosts file, and of this machine.
    async fn listed(&self, name: &Name) -> Vec<IpAddr> {
        let hosts = self.0.hosts.get().await;
        let of_type = |kind| hosts.lookup_static_host(&Query::query(name.clone(), kind));
        let lookups = [RecordType::A, RecordType::AAAA]
            .into_iter()
            .filter_map(of_type);
        let listed: Vec<_> = lookups.flat_map(LookupIp::from).collect();
        if listed.is_empty() && name.is_localhost() {
            return vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        }
        listed
    }

    async fn query(&self, name: &Name) -> Result<Vec<IpAddr>, Error> {
        let Self(inner) = self;
        let conf = inner.conf.get().await;
        if conf.servers.is_empty() {
            return Err(Error::NoServers {
                host: name.to_string(),
                resolv_conf: inner.options.resolv_conf.display().to_string(),
                hosts: inner.options.hosts.display().to_string(),
            });
        }
        servers::lookup(name, &conf, &inner.options, &inner.dead).await
    }
}

/// Rotates the addresses for each new connection.
#[cfg(feature = "http-client")]
impl Resolve for Resolver {
    fn resolve(&self, name: reqwest::dns::Name) -> Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            let mut addresses = resolver.lookup(name.as_str()).await?;
            resolver.0.round_robin.rotate(name.as_str(), &mut addresses);
            // Port 0 selects the port of the URL.
            let addresses = addresses.into_iter().map(|ip| SocketAddr::new(ip, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}
