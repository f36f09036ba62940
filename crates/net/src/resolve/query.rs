//! A DNS query to one server.

use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use hickory_resolver::Resolver;
use hickory_resolver::config::{NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::lookup_ip::LookupIp;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RecordType};
use tokio::time::timeout;

use super::sockets::Sockets;

/// Time that IPv6 addresses get after the IPv4 ones are there: some servers never answer an AAAA query. hickory's
/// `lookup_ip` waits for both.
const AAAA_GRACE: Duration = Duration::from_millis(100);

/// Reason for missing addresses, in words that follow "the server".
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("has no such name")]
    NoName,
    #[error("has no address of it")]
    NoAddress,
    #[error("{0}")]
    Failed(String),
    #[error("did not answer within {0:?}")]
    Silent(Duration),
}

/// The addresses of `name`, at least one. Sends A and AAAA queries at once, with a fallback to TCP for truncated replies.
pub(super) async fn query(
    server: SocketAddr,
    name: &Name,
    wait: Duration,
) -> Result<Vec<IpAddr>, Refusal> {
    // One client per query: it is cheap, and its sockets belong to the runtime of the caller.
    let client = client(server, wait)
        .map_err(|error| Refusal::Failed(format!("cannot be asked: {error}")))?;
    let v4 = pin!(addresses(&client, name, RecordType::A, wait));
    let v6 = pin!(addresses(&client, name, RecordType::AAAA, wait));
    let replies = match select(v4, v6).await {
        Either::Left((Ok(v4), v6)) => {
            let v6 = timeout(AAAA_GRACE, v6).await;
            (Ok(v4), v6.unwrap_or(Err(Refusal::NoAddress)))
        }
        Either::Left((v4, v6)) => (v4, v6.await),
        Either::Right((v6, v4)) => (v4.await, v6),
    };
    match replies {
        (Ok(v4), v6) => Ok([v4, v6.unwrap_or_default()].concat()),
        (Err(_), Ok(v6)) => Ok(v6),
        // Without an address, the reply to the A query decides: servers fail at AAAA queries more often.
        (Err(Refusal::NoAddress), Err(v6 @ (Refusal::Failed(_) | Refusal::Silent(_)))) => {
            Err(Refusal::Failed(v6.to_string()))
        }
        (Err(v4), Err(_)) => Err(v4),
    }
}

async fn addresses(
    client: &Resolver<Sockets>,
    name: &Name,
    kind: RecordType,
    wait: Duration,
) -> Result<Vec<IpAddr>, Refusal> {
    let answer = timeout(wait, client.lookup(name.clone(), kind)).await;
    match answer.unwrap_or(Err(NetError::Timeout)) {
        Ok(answer) => {
            let addresses: Vec<_> = LookupIp::from(answer).into_iter().collect();
            if addresses.is_empty() {
                return Err(Refusal::NoAddress);
            }
            Ok(addresses)
        }
        Err(error) => Err(refusal(error, wait)),
    }
}

fn refusal(error: NetError, wait: Duration) -> Refusal {
    match error {
        NetError::Timeout => Refusal::Silent(wait),
        NetError::Dns(DnsError::NoRecordsFound(no_records)) => {
            if no_records.response_code == ResponseCode::NXDomain {
                Refusal::NoName
            } else {
                Refusal::NoAddress
            }
        }
        NetError::Dns(DnsError::ResponseCode(code)) => Refusal::Failed(format!("answered {code}")),
        // hickory drops the error of the system.
        NetError::NoConnections => Refusal::Failed("cannot be reached".to_owned()),
        error => Refusal::Failed(format!("cannot be understood: {error}")),
    }
}

/// A client of one server. A client of all would give up at the first server that fails, and after one timeout for all
/// of them; its error would name none.
fn client(server: SocketAddr, wait: Duration) -> Result<Resolver<Sockets>, NetError> {
    let mut config = NameServerConfig::udp_and_tcp(server.ip());
    for connection in &mut config.connections {
        connection.port = server.port();
    }
    let config = ResolverConfig::from_name_servers(vec![config]);
    let mut builder = Resolver::builder_with_config(config, Sockets::default());
    let options = builder.options_mut();
    options.timeout = wait;
    options.attempts = 0;
    options.use_hosts_file = ResolveHosts::Never;
    builder.build()
}
