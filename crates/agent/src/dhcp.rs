//! A client of DHCP that leases addresses for the cluster, not for this host: no network interface gets them.
//!
//! Source: RFC 2131.

mod frame;
mod lease;
mod message;

use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

pub(crate) use self::lease::{DhcpLease, leased_address};

use self::message::{ACK, ClientMessage, DISCOVER, NAK, OFFER, REQUEST, SERVER, ServerMessage};
use crate::Error;
use crate::links::NetworkLink;
use crate::probes::ethernet::FrameSocket;
use crate::probes::{IPV4_PROTOCOL, MacAddress, mac_text};

/// For the answers to a message, which is sent as often.
const DISCOVER_WAITS: [Duration; 3] = [
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];
const REQUEST_WAITS: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(4)];
/// After a refusal: a server that refuses all would be asked without end.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);

/// The client that a server leases an address to.
#[derive(Debug, Clone)]
pub(crate) struct DhcpClient {
    pub(crate) mac: MacAddress,
    pub(crate) host_name: String,
    /// The address of the last lease, which is asked for first.
    pub(crate) last: Option<Ipv4Addr>,
}

/// Leases an address from a server of the link's network.
///
/// Errors: without the right to raw sockets; no server leases an address in time.
pub(crate) async fn lease(
    link: &NetworkLink,
    client: &DhcpClient,
    timeout: Duration,
) -> Result<DhcpLease, Error> {
    let mac = mac_text(client.mac);
    let doing = || format!("leasing an address for {mac} on {}", link.name);
    let failed = |error: std::io::Error| Error::io(doing(), error);
    let filter = frame::filter();
    let socket =
        FrameSocket::open(link.index, IPV4_PROTOCOL, client.mac, &filter).map_err(failed)?;
    let begin = Instant::now();
    let exchange = Exchange {
        socket,
        client,
        begin,
    };
    match timeout_at(begin + timeout, exchange.lease()).await {
        Ok(lease) => lease.map_err(failed),
        Err(_) => Err(Error::message(format!(
            "{}: no DHCP server leased one within {} seconds",
            doing(),
            timeout.as_secs()
        ))),
    }
}

struct Exchange<'a> {
    socket: FrameSocket,
    client: &'a DhcpClient,
    begin: Instant,
}

impl Exchange<'_> {
    /// Asks until a server leases an address.
    async fn lease(&self) -> std::io::Result<DhcpLease> {
        if let Some(last) = self.client.last
            && let Some(lease) = self.request(new_transaction(), last, None).await?
        {
            return Ok(lease);
        }
        loop {
            let transaction = new_transaction();
            let discover = self.message(DISCOVER, transaction, self.client.last, None);
            let is_offer = |message: &ServerMessage| {
                message.kind == OFFER && !message.address.is_unspecified()
            };
            let offer = self.ask(&discover, &DISCOVER_WAITS, is_offer).await?;
            let Some(offer) = offer else {
                continue;
            };
            let server = offer.address_option(SERVER);
            let lease = self.request(transaction, offer.address, server).await?;
            if let Some(lease) = lease {
                return Ok(lease);
            }
            tokio::time::sleep(REFUSED_PAUSE).await;
        }
    }

    /// Asks for an address: of one server that offered it, or of all after a restart. None when it is refused, or when
    /// no server answers.
    async fn request(
        &self,
        transaction: u32,
        address: Ipv4Addr,
        server: Option<Ipv4Addr>,
    ) -> std::io::Result<Option<DhcpLease>> {
        let request = self.message(REQUEST, transaction, Some(address), server);
        let is_answer = |message: &ServerMessage| {
            matches!(message.kind, ACK | NAK)
                && (server.is_none() || message.address_option(SERVER) == server)
        };
        let answer = self.ask(&request, &REQUEST_WAITS, is_answer).await?;
        let acknowledged = answer.filter(|answer| answer.kind == ACK);
        Ok(acknowledged.and_then(DhcpLease::new))
    }

    fn message(
        &self,
        kind: u8,
        transaction: u32,
        requested: Option<Ipv4Addr>,
        server: Option<Ipv4Addr>,
    ) -> ClientMessage<'_> {
        ClientMessage {
            kind,
            transaction,
            elapsed_s: 0,
            mac: self.client.mac,
            host_name: &self.client.host_name,
            requested,
            server,
        }
    }

    /// Sends a message once for each of the waits, until an answer to it fits.
    async fn ask(
        &self,
        message: &ClientMessage<'_>,
        waits: &[Duration],
        fits: impl Fn(&ServerMessage) -> bool,
    ) -> std::io::Result<Option<ServerMessage>> {
        let is_own = |answer: &ServerMessage| {
            answer.transaction == message.transaction && answer.mac == message.mac && fits(answer)
        };
        let mut buffer = [0; frame::MAX_FRAME];
        for wait in waits {
            let elapsed = self.begin.elapsed().as_secs();
            let message = ClientMessage {
                elapsed_s: u16::try_from(elapsed).unwrap_or(u16::MAX),
                ..message.clone()
            };
            let frame = frame::wrap(message.mac, &message.bytes());
            let frame = frame.ok_or_else(|| std::io::Error::other("the message is too long"))?;
            self.socket.send(&frame).await?;
            let deadline = Instant::now() + *wait;
            while let Ok(length) = timeout_at(deadline, self.socket.receive(&mut buffer)).await {
                let received = frame::unwrap(&buffer[..length?]).and_then(ServerMessage::parse);
                if let Some(answer) = received.filter(is_own) {
                    return Ok(Some(answer));
                }
            }
        }
        Ok(None)
    }
}

/// Other hosts of the cluster ask for the same hardware address at the same time.
fn new_transaction() -> u32 {
    Uuid::new_v4().as_fields().0
}
