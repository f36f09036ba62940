//! Commands of IPMI for networks, and their responses: a completion code, then the data.
//!
//! Source: IPMI 2.0 revision 1.1 with errata 7, sections 22.24 (channel), 23.2 (parameters of networks).

use std::net::{Ipv4Addr, Ipv6Addr};

const APPLICATION: u8 = 0x06;
const TRANSPORT: u8 = 0x0c;
const GET_CHANNEL_INFO: u8 = 0x42;
const GET_PARAMETER: u8 = 0x02;
/// Parameters.
const IPV4_ADDRESS: u8 = 3;
const ADDRESSING_MODE: u8 = 51;
const IPV6_LIMITS: u8 = 55;
const IPV6_STATIC: u8 = 56;
const IPV6_DYNAMIC: u8 = 59;
/// Media of channels: Ethernet and other networks.
const NETWORKS: [u8; 2] = [4, 6];
const SLAAC: u8 = 1;
const DHCP: u8 = 2;
const ACTIVE: u8 = 0;

/// A command to the controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IpmiCommand {
    /// Network function: the group of the command.
    pub(super) function: u8,
    pub(super) number: u8,
    pub(super) data: Vec<u8>,
}

impl IpmiCommand {
    pub(super) fn channel_info(channel: u8) -> Self {
        Self {
            function: APPLICATION,
            number: GET_CHANNEL_INFO,
            data: vec![channel],
        }
    }

    pub(super) fn ipv4_address(channel: u8) -> Self {
        Self::parameter(channel, IPV4_ADDRESS, 0)
    }

    pub(super) fn addressing_mode(channel: u8) -> Self {
        Self::parameter(channel, ADDRESSING_MODE, 0)
    }

    pub(super) fn ipv6_limits(channel: u8) -> Self {
        Self::parameter(channel, IPV6_LIMITS, 0)
    }

    pub(super) fn ipv6_address(channel: u8, entry: Ipv6Entry, number: u8) -> Self {
        let parameter = match entry {
            Ipv6Entry::Static => IPV6_STATIC,
            Ipv6Entry::Dynamic => IPV6_DYNAMIC,
        };
        Self::parameter(channel, parameter, number)
    }

    fn parameter(channel: u8, parameter: u8, set: u8) -> Self {
        Self {
            function: TRANSPORT,
            number: GET_PARAMETER,
            data: vec![channel, parameter, set, 0],
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressingMode {
    Ipv4Only,
    Ipv6Only,
    Both,
}

/// Kinds of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ipv6Entry {
    Static,
    Dynamic,
}

/// Numbers of addresses that a channel has at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ipv6Limits {
    pub(super) fixed: u8,
    pub(super) dynamic: u8,
}

/// Whether the response to `channel_info` is of a network.
pub(super) fn is_network(response: &[u8]) -> bool {
    matches!(response, [0, _, medium, ..] if NETWORKS.contains(&(medium & 0x7f)))
}

/// The data of a parameter, after the completion code and the revision.
fn value(response: &[u8]) -> Option<&[u8]> {
    match response {
        [0, _, value @ ..] => Some(value),
        _ => None,
    }
}

pub(super) fn ipv4_address(response: &[u8]) -> Option<Ipv4Addr> {
    let address: [u8; 4] = value(response)?.try_into().ok()?;
    Some(Ipv4Addr::from(address)).filter(|address| !address.is_unspecified())
}

pub(super) fn addressing_mode(response: &[u8]) -> Option<AddressingMode> {
    match value(response)? {
        [0, ..] => Some(AddressingMode::Ipv4Only),
        [1, ..] => Some(AddressingMode::Ipv6Only),
        [2, ..] => Some(AddressingMode::Both),
        _ => None,
    }
}

pub(super) fn ipv6_limits(response: &[u8]) -> Option<Ipv6Limits> {
    match value(response)? {
        [fixed, dynamic, ..] => Some(Ipv6Limits {
            fixed: *fixed,
            dynamic: *dynamic,
        }),
        _ => None,
    }
}

/// An address that is in use.
pub(super) fn ipv6_address(response: &[u8], entry: Ipv6Entry) -> Option<Ipv6Addr> {
    let value: &[u8; 20] = value(response)?.first_chunk()?;
    let [_, source, address @ .., _prefix, status] = *value;
    let is_enabled = match entry {
        Ipv6Entry::Static => source & 0x80 != 0,
        Ipv6Entry::Dynamic => matches!(source & 0x0f, SLAAC | DHCP),
    };
    let address = Ipv6Addr::from(address);
    (is_enabled && status == ACTIVE && !address.is_unspecified()).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn commands_have_the_bytes_of_the_protocol() {
        let command = IpmiCommand::channel_info(1);
        assert_eq!((command.function, command.number), (6, 0x42));
        assert_eq!(command.data, [1]);
        let command = IpmiCommand::ipv6_address(3, Ipv6Entry::Dynamic, 2);
        assert_eq!((command.function, command.number), (12, 2));
        assert_eq!(command.data, [3, 59, 2, 0]);
        assert_eq!(IpmiCommand::ipv4_address(8).data, [8, 3, 0, 0]);
    }

    #[test]
    fn responses_are_read() {
        assert!(is_network(&[0, 1, 0x84, 1]) && is_network(&[0, 1, 6]));
        assert!(!is_network(&[0, 1, 5]) && !is_network(&[0xcc]) && !is_network(&[]));
        assert_eq!(
            ipv4_address(&[0, 0x11, 10, 0, 0, 1]),
            Some([10, 0, 0, 1].into())
        );
        for response in [
            &[0x80][..],
            &[0, 0x11, 0, 0, 0, 0],
            &[0, 0x11, 10, 0, 0],
            &[],
        ] {
            assert_eq!(ipv4_address(response), None);
        }
        assert_eq!(addressing_mode(&[0, 0x11, 2]), Some(AddressingMode::Both));
        assert_eq!(addressing_mode(&[0, 0x11, 3]), None);
        let mut response = [0; 22];
        (response[3], response[4], response[20]) = (0x80, 0xfd, 64);
        let address = ipv6_address(&response, Ipv6Entry::Static);
        assert_eq!(address, Some("fd00::".parse().unwrap()));
        assert_eq!(ipv6_address(&response, Ipv6Entry::Dynamic), None);
        assert_eq!(ipv6_address(&response[..21], Ipv6Entry::Static), None);
        response[21] = 2;
        assert_eq!(ipv6_address(&response, Ipv6Entry::Static), None);
    }

    proptest! {
        #[test]
        fn any_response_is_read(response in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = is_network(&response);
            let _ = ipv4_address(&response);
            let _ = addressing_mode(&response);
            let _ = ipv6_limits(&response);
            let _ = ipv6_address(&response, Ipv6Entry::Static);
            let _ = ipv6_address(&response, Ipv6Entry::Dynamic);
        }
    }
}
