//! Messages of DHCP: fixed fields and options.
//!
//! Options that a server moved into the fields of names (option 52) are not read: the few that a lease needs fit.
//!
//! Source: RFC 2131, RFC 2132.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use crate::probes::MacAddress;

pub(super) const DISCOVER: u8 = 1;
pub(super) const OFFER: u8 = 2;
pub(super) const REQUEST: u8 = 3;
pub(super) const ACK: u8 = 5;
pub(super) const NAK: u8 = 6;

pub(super) const SUBNET_MASK: u8 = 1;
pub(super) const ROUTERS: u8 = 3;
pub(super) const NAME_SERVERS: u8 = 6;
const HOST_NAME: u8 = 12;
pub(super) const DOMAIN_NAME: u8 = 15;
pub(super) const BROADCAST_ADDRESS: u8 = 28;
const REQUESTED_ADDRESS: u8 = 50;
pub(super) const LEASE_TIME: u8 = 51;
pub(super) const MESSAGE_KIND: u8 = 53;
pub(super) const SERVER: u8 = 54;
const WANTED_OPTIONS: u8 = 55;
pub(super) const RENEWAL_TIME: u8 = 58;
pub(super) const REBINDING_TIME: u8 = 59;
const PADDING: u8 = 0;
const END: u8 = 255;

/// Options that a server is asked for.
const WANTED: [u8; 8] = [
    SUBNET_MASK,
    BROADCAST_ADDRESS,
    ROUTERS,
    NAME_SERVERS,
    DOMAIN_NAME,
    LEASE_TIME,
    RENEWAL_TIME,
    REBINDING_TIME,
];
/// Length of the fixed fields, with the cookie that precedes the options. Units: bytes.
const FIXED: usize = 240;
const COOKIE: [u8; 4] = [99, 130, 83, 99];
/// Servers of BOOTP ignore shorter messages. Units: bytes.
const MIN_LENGTH: usize = 300;
/// Longest host name in a message. Units: bytes.
const MAX_NAME: usize = 63;

/// A message to all servers.
#[derive(Debug, Clone)]
pub(super) struct ClientMessage<'a> {
    pub(super) kind: u8,
    pub(super) transaction: u32,
    /// Since the first message.
    pub(super) elapsed_s: u16,
    pub(super) mac: MacAddress,
    pub(super) host_name: &'a str,
    pub(super) requested: Option<Ipv4Addr>,
    /// The server whose offer is accepted.
    pub(super) server: Option<Ipv4Addr>,
}

impl ClientMessage<'_> {
    pub(super) fn bytes(&self) -> Vec<u8> {
        // A request, on Ethernet.
        let mut bytes = vec![1, 1, 6, 0];
        bytes.extend(self.transaction.to_be_bytes());
        bytes.extend(self.elapsed_s.to_be_bytes());
        // The broadcast flag: the offered address belongs to no interface, so a unicast answer finds no host.
        bytes.extend(0x8000_u16.to_be_bytes());
        // Addresses of the client and of servers, all unset.
        bytes.resize(28, 0);
        bytes.extend(self.mac);
        bytes.resize(FIXED - COOKIE.len(), 0);
        bytes.extend(COOKIE);
        bytes.extend([MESSAGE_KIND, 1, self.kind]);
        for (code, address) in [(REQUESTED_ADDRESS, self.requested), (SERVER, self.server)] {
            if let Some(address) = address {
                bytes.extend([code, 4]);
                bytes.extend(address.octets());
            }
        }
        add_option(&mut bytes, HOST_NAME, self.host_name.as_bytes());
        add_option(&mut bytes, WANTED_OPTIONS, &WANTED);
        bytes.push(END);
        if bytes.len() < MIN_LENGTH {
            bytes.resize(MIN_LENGTH, PADDING);
        }
        bytes
    }
}

fn add_option(bytes: &mut Vec<u8>, code: u8, value: &[u8]) {
    let value = &value[..value.len().min(MAX_NAME)];
    if let Ok(length) = u8::try_from(value.len()) {
        bytes.extend([code, length]);
        bytes.extend(value);
    }
}

/// A message of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerMessage {
    pub(super) kind: u8,
    pub(super) transaction: u32,
    pub(super) mac: MacAddress,
    /// The address that is offered or leased.
    pub(super) address: Ipv4Addr,
    options: BTreeMap<u8, Vec<u8>>,
}

impl ServerMessage {
    /// None for anything else.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (fixed, options) = bytes.split_first_chunk::<FIXED>()?;
        // An answer, on Ethernet.
        if fixed[..3] != [2, 1, 6] || fixed[FIXED - COOKIE.len()..] != COOKIE {
            return None;
        }
        let options = parse_options(options)?;
        let [kind] = *options.get(&MESSAGE_KIND)?.as_slice() else {
            return None;
        };
        let address: [u8; 4] = fixed[16..20].try_into().ok()?;
        Some(Self {
            kind,
            transaction: u32::from_be_bytes(fixed[4..8].try_into().ok()?),
            mac: fixed[28..34].try_into().ok()?,
            address: address.into(),
            options,
        })
    }

    pub(super) fn option(&self, code: u8) -> Option<&[u8]> {
        self.options.get(&code).map(Vec::as_slice)
    }

    pub(super) fn address_option(&self, code: u8) -> Option<Ipv4Addr> {
        let address: [u8; 4] = self.option(code)?.try_into().ok()?;
        Some(address.into())
    }

    pub(super) fn seconds_option(&self, code: u8) -> Option<u32> {
        let seconds: [u8; 4] = self.option(code)?.try_into().ok()?;
        Some(u32::from_be_bytes(seconds))
    }
}

/// None when one is cut off. Parts of an option that comes several times are joined. Source: RFC 3396.
fn parse_options(mut bytes: &[u8]) -> Option<BTreeMap<u8, Vec<u8>>> {
    let mut options = BTreeMap::<u8, Vec<u8>>::new();
    loop {
        match *bytes {
            [] | [END, ..] => return Some(options),
            [PADDING, ref rest @ ..] => bytes = rest,
            [_] => return None,
            [code, length, ref rest @ ..] => {
                let (value, rest) = rest.split_at_checked(usize::from(length))?;
                options.entry(code).or_default().extend(value);
                bytes = rest;
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A message of a server with options after its kind.
    pub(in crate::dhcp) fn answer(kind: u8, options: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; FIXED];
        bytes[..3].copy_from_slice(&[2, 1, 6]);
        bytes[4..8].copy_from_slice(&7_u32.to_be_bytes());
        bytes[16..20].copy_from_slice(&[10, 0, 0, 5]);
        bytes[28..34].copy_from_slice(&[2; 6]);
        bytes[236..].copy_from_slice(&COOKIE);
        bytes.extend([MESSAGE_KIND, 1, kind]);
        bytes.extend(options);
        bytes
    }

    #[test]
    fn requests_have_the_fields_of_the_protocol() {
        let message = ClientMessage {
            kind: REQUEST,
            transaction: 0x0102_0304,
            elapsed_s: 5,
            mac: [2; 6],
            host_name: "a-api",
            requested: Some([10, 0, 0, 5].into()),
            server: Some([10, 0, 0, 1].into()),
        };
        let bytes = message.bytes();
        assert_eq!(bytes.len(), MIN_LENGTH);
        assert_eq!(bytes[..12], [1, 1, 6, 0, 1, 2, 3, 4, 0, 5, 0x80, 0]);
        assert_eq!(bytes[12..28], [0; 16]);
        assert_eq!(bytes[28..34], [2; 6]);
        assert_eq!(bytes[236..243], [99, 130, 83, 99, 53, 1, 3]);
        assert_eq!(bytes[243..249], [50, 4, 10, 0, 0, 5]);
        assert_eq!(bytes[249..255], [54, 4, 10, 0, 0, 1]);
        assert_eq!(bytes[255..262], *b"\x0c\x05a-api");
        assert_eq!(bytes[262..272], [55, 8, 1, 28, 3, 6, 15, 51, 58, 59]);
        assert_eq!(bytes[272], END);
    }

    #[test]
    fn answers_are_read() {
        let bytes = answer(
            ACK,
            &[
                0, 51, 4, 0, 0, 14, 16, 15, 2, b'a', b'.', 15, 1, b'b', END, 9,
            ],
        );
        let message = ServerMessage::parse(&bytes).unwrap();
        assert_eq!((message.kind, message.transaction), (ACK, 7));
        assert_eq!(message.address, Ipv4Addr::new(10, 0, 0, 5));
        assert_eq!(message.seconds_option(LEASE_TIME), Some(3600));
        assert_eq!(message.option(DOMAIN_NAME), Some(&b"a.b"[..]));
        assert_eq!(message.address_option(SERVER), None);
        let mut question = bytes.clone();
        question[0] = 1;
        assert_eq!(ServerMessage::parse(&question), None);
        assert_eq!(ServerMessage::parse(&bytes[..FIXED]), None);
        assert_eq!(ServerMessage::parse(&answer(ACK, &[51, 4, 0])), None);
    }

    proptest! {
        #[test]
        fn any_message_is_read(options in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = ServerMessage::parse(&answer(OFFER, &options));
        }
    }
}
