//! A DNS query to one server.

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

/// Time that IPv6 addresses get after the IPv4 ones are there: some servers never answer an AAAA query.
const AAAA_GRACE: Duration = Duration::from_millis(100);

/// The reply of a server about a name, with texts that follow "the server".
pub(super) enum ServerReply {
    /// Sorted, each once, at least one.
    Addresses(Vec<IpAddr>),
    /// NXDOMAIN, or no address record.
    Denied(String),
    /// The server failed.
    Failed(String),
    /// No reply within the timeout.
    Silent(String),
}

/// Reason for missing records of one type.
enum MissingRecords {
    Name,
    Records,
    Failed(String),
    Silent(String),
}

/// Sends A and AAAA queries at once, with a fallback to TCP for truncated replies.
pub(super) async fn query(server: SocketAddr, name: &Name, wait: Duration) -> ServerReply {
    // One client per query: it is cheap, and its sockets belong to the runtime of the caller.
    let client = match client(server, wait) {
        Ok(client) => client,
        Err(error) => return ServerReply::Failed(format!("cannot be asked: {error}")),
    };
    let v4 = pin!(records(&client, name, RecordType::A, wait));
    let v6 = pin!(records(&client, name, RecordType::AAAA, wait));
    match select(v4, v6).await {
        Either::Left((Ok(v4), v6)) => {
            let v6 = timeout(AAAA_GRACE, v6)
                .await
                .unwrap_or(Err(MissingRecords::Records));
            merge(Ok(v4), v6)
        }
        Either::Left((v4, v6)) => merge(v4, v6.await),
        Either::Right((v6, v4)) => merge(v4.await, v6),
    }
}

/// Without an address, the reply to the A query decides: servers fail at AAAA queries more often.
fn merge(
    v4: Result<Vec<IpAddr>, MissingRecords>,
    v6: Result<Vec<IpAddr>, MissingRecords>,
) -> ServerReply {
    match (v4, v6) {
        (Ok(mut addresses), v6) => {
            addresses.extend(v6.unwrap_or_default());
            ServerReply::Addresses(sorted(addresses))
        }
        (Err(_), Ok(addresses)) => ServerReply::Addresses(sorted(addresses)),
        (Err(MissingRecords::Silent(text)), _) => ServerReply::Silent(text),
        (Err(MissingRecords::Failed(text)), _)
        | (
            Err(MissingRecords::Records),
            Err(MissingRecords::Failed(text) | MissingRecords::Silent(text)),
        ) => ServerReply::Failed(text),
        (Err(MissingRecords::Name), _) => ServerReply::Denied("has no such name".to_owned()),
        (Err(MissingRecords::Records), _) => ServerReply::Denied("has no address of it".to_owned()),
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
) -> Result<Vec<IpAddr>, MissingRecords> {
    let silent = || MissingRecords::Silent(format!("did not answer within {wait:?}"));
    let answer = timeout(wait, client.lookup(name.clone(), kind))
        .await
        .map_err(|_| silent())?;
    let answer = answer.map_err(|error| match error {
        NetError::Timeout => silent(),
        NetError::Dns(DnsError::NoRecordsFound(no_records)) => match no_records.response_code {
            ResponseCode::NXDomain => MissingRecords::Name,
            ResponseCode::NoError => MissingRecords::Records,
            code => MissingRecords::Failed(format!("answered {code}")),
        },
        NetError::Dns(DnsError::ResponseCode(code)) => {
            MissingRecords::Failed(format!("answered {code}"))
        }
        NetError::Io(error) if error.kind() == io::ErrorKind::TimedOut => silent(),
        // hickory drops the error of the system.
        NetError::NoConnections => MissingRecords::Failed("cannot be reached".to_owned()),
        NetError::Io(error) => MissingRecords::Failed(format!("cannot be reached: {error}")),
        error => MissingRecords::Failed(format!("cannot be understood: {error}")),
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
        return Err(MissingRecords::Records);
    }
    Ok(addresses)
}

/// A client of one server, without cache and retries: both are ours.
fn client(server: SocketAddr, wait: Duration) -> Result<Resolver<Sockets>, NetError> {
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
        connection.port = server.port();
        connection
    });
    // Replies are trusted by the order of the servers, not by their authority.
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
