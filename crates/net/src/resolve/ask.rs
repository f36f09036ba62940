//! One question to one server.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use hickory_resolver::Resolver;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
    ServerOrderingStrategy,
};
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use tokio::time::timeout;

use super::sockets::Sockets;

/// How long IPv6 addresses are waited for when IPv4 ones are there: some servers never answer that question.
const AAAA_GRACE: Duration = Duration::from_millis(100);

/// What a server said on a name, in words that follow on "the server".
pub(super) enum Reply {
    /// Sorted, each once, at least one.
    Addresses(Vec<IpAddr>),
    /// There is no such name, or it has no address.
    Denied(String),
    /// It could not tell.
    Failed(String),
    /// Nothing.
    Silent(String),
}

/// Why there are no records of one type.
enum Lack {
    Name,
    Records,
    Failed(String),
    Silent(String),
}

/// Asks for both kinds of addresses at once, over TCP where an answer is too long for UDP.
pub(super) async fn ask(server: SocketAddr, name: &Name, wait: Duration) -> Reply {
    // Made for each question: it is cheap, and what it opens belongs to the runtime that asks.
    let client = match client(server, wait) {
        Ok(client) => client,
        Err(error) => return Reply::Failed(format!("cannot be asked: {error}")),
    };
    let v4 = pin!(records(&client, name, RecordType::A, wait));
    let v6 = pin!(records(&client, name, RecordType::AAAA, wait));
    match select(v4, v6).await {
        Either::Left((Ok(v4), v6)) => {
            let v6 = timeout(AAAA_GRACE, v6).await.unwrap_or(Err(Lack::Records));
            merge(Ok(v4), v6)
        }
        Either::Left((v4, v6)) => merge(v4, v6.await),
        Either::Right((v6, v4)) => merge(v4.await, v6),
    }
}

/// The word on IPv4 counts where there is no address: servers err on IPv6 more often.
fn merge(v4: Result<Vec<IpAddr>, Lack>, v6: Result<Vec<IpAddr>, Lack>) -> Reply {
    match (v4, v6) {
        (Ok(mut addresses), v6) => {
            addresses.extend(v6.unwrap_or_default());
            Reply::Addresses(sorted(addresses))
        }
        (Err(_), Ok(addresses)) => Reply::Addresses(sorted(addresses)),
        (Err(Lack::Silent(text)), _) => Reply::Silent(text),
        (Err(Lack::Failed(text)), _)
        | (Err(Lack::Records), Err(Lack::Failed(text) | Lack::Silent(text))) => Reply::Failed(text),
        (Err(Lack::Name), _) => Reply::Denied("has no such name".to_owned()),
        (Err(Lack::Records), _) => Reply::Denied("has no address of it".to_owned()),
    }
}

fn sorted(mut addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

async fn records(
    client: &Resolver<Sockets>,
    name: &Name,
    kind: RecordType,
    wait: Duration,
) -> Result<Vec<IpAddr>, Lack> {
    let silent = || Lack::Silent(format!("did not answer within {wait:?}"));
    let answer = timeout(wait, client.lookup(name.clone(), kind))
        .await
        .map_err(|_| silent())?;
    let answer = answer.map_err(|error| match error {
        NetError::Timeout => silent(),
        NetError::Dns(DnsError::NoRecordsFound(no_records)) => match no_records.response_code {
            ResponseCode::NXDomain => Lack::Name,
            ResponseCode::NoError => Lack::Records,
            code => Lack::Failed(format!("answered {code}")),
        },
        NetError::Dns(DnsError::ResponseCode(code)) => Lack::Failed(format!("answered {code}")),
        NetError::Io(error) if error.kind() == io::ErrorKind::TimedOut => silent(),
        // What the system said is lost on the way.
        NetError::NoConnections => Lack::Failed("cannot be reached".to_owned()),
        NetError::Io(error) => Lack::Failed(format!("cannot be reached: {error}")),
        error => Lack::Failed(format!("cannot be understood: {error}")),
    })?;
    let addresses = answer
        .answers()
        .iter()
        .filter_map(|record| match &record.data {
            RData::A(address) => Some(IpAddr::V4(address.0)),
            RData::AAAA(address) => Some(IpAddr::V6(address.0)),
            _ => None,
        });
    let addresses: Vec<_> = addresses.collect();
    if addresses.is_empty() {
        return Err(Lack::Records);
    }
    Ok(addresses)
}

/// A client of one server, without memory and without a second try: both are ours.
fn client(server: SocketAddr, wait: Duration) -> Result<Resolver<Sockets>, NetError> {
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
        connection.port = server.port();
        connection
    });
    // Which answers are believed is decided by the order of the servers, not by their authority.
    let server = NameServerConfig::new(server.ip(), true, connections.into());
    let mut options = ResolverOpts::default();
    options.timeout = wait;
    options.attempts = 0;
    options.cache_size = 0;
    options.use_hosts_file = ResolveHosts::Never;
    options.num_concurrent_reqs = 1;
    options.server_ordering_strategy = ServerOrderingStrategy::UserProvidedOrder;
    let config = ResolverConfig::from_name_servers(vec![server]);
    Resolver::builder_with_config(config, Sockets::default())
        .with_options(options)
        .build()
}
