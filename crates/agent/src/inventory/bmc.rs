//! Addresses of the management controller, read from it by IPMI.
//!
//! Source: assisted-installer-agent, src/inventory/bmc.go, which runs ipmitool.

mod device;
mod lan;

use std::net::{Ipv4Addr, Ipv6Addr};

use self::device::IpmiDevice;
use self::lan::{AddressingMode, IpmiCommand, Ipv6Entry};
use crate::HostFiles;

/// Channels that can be networks. Source: IPMI 2.0, table 6-1.
const CHANNELS: std::ops::RangeInclusive<u8> = 1..=12;
/// Addresses of each kind that are read of a channel.
const MAX_ENTRIES: u8 = 16;

/// Addresses of a management controller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BmcAddresses {
    v4: Option<Ipv4Addr>,
    v6: Option<Ipv6Addr>,
}

impl BmcAddresses {
    /// None is known without a device, or when the controller does not answer.
    pub(super) fn read(files: &HostFiles) -> Self {
        IpmiDevice::open(files).map_or_else(Self::default, |mut device| {
            Self::ask(|command| device.send(command))
        })
    }

    /// The peer's text for none is that of a controller without one.
    pub(super) fn v4_text(&self) -> String {
        self.v4.unwrap_or(Ipv4Addr::UNSPECIFIED).to_string()
    }

    pub(super) fn v6_text(&self) -> String {
        self.v6
            .map_or_else(|| "::/0".to_owned(), |address| address.to_string())
    }

    /// The first address of each kind. `send` has the response to a command.
    fn ask(mut send: impl FnMut(&IpmiCommand) -> Option<Vec<u8>>) -> Self {
        let mut addresses = Self::default();
        for channel in CHANNELS {
            if addresses.v4.is_some() && addresses.v6.is_some() {
                break;
            }
            let info = send(&IpmiCommand::channel_info(channel));
            if !info.is_some_and(|info| lan::is_network(&info)) {
                continue;
            }
            if addresses.v4.is_none() {
                let response = send(&IpmiCommand::ipv4_address(channel));
                addresses.v4 = response.and_then(|response| lan::ipv4_address(&response));
            }
            if addresses.v6.is_none() {
                addresses.v6 = ipv6_address(channel, &mut send);
            }
        }
        addresses
    }
}

/// Addresses that the network gave come before configured ones.
fn ipv6_address(
    channel: u8,
    send: &mut impl FnMut(&IpmiCommand) -> Option<Vec<u8>>,
) -> Option<Ipv6Addr> {
    let mode = lan::addressing_mode(&send(&IpmiCommand::addressing_mode(channel))?)?;
    if mode == AddressingMode::Ipv4Only {
        return None;
    }
    let limits = lan::ipv6_limits(&send(&IpmiCommand::ipv6_limits(channel))?)?;
    for (entry, count) in [
        (Ipv6Entry::Dynamic, limits.dynamic),
        (Ipv6Entry::Static, limits.fixed),
    ] {
        for number in 0..count.min(MAX_ENTRIES) {
            let response = send(&IpmiCommand::ipv6_address(channel, entry, number));
            let address = response.and_then(|response| lan::ipv6_address(&response, entry));
            if address.is_some() {
                return address;
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A controller with a serial line at channel 1 and networks at 2 and 3.
    fn controller(command: &IpmiCommand) -> Vec<u8> {
        let Some(&channel) = command.data.first() else {
            panic!("{command:?}");
        };
        if command.number == 0x42 {
            let medium = match channel {
                1 => 5,
                2 | 3 => 4,
                // Out of range.
                _ => return vec![0xcc],
            };
            return vec![0, channel, medium, 1];
        }
        assert!(matches!(channel, 2 | 3), "{command:?}");
        let value: &[u8] = match (channel, command.data[1], command.data[2]) {
            (2, 3, 0) => &[0, 0, 0, 0],
            (3, 3, 0) => &[10, 0, 0, 9],
            (2, 51, 0) => &[0],
            (3, 51, 0) => &[2],
            (3, 55, 0) => &[200, 1, 3],
            // Not active.
            (3, 59, 0) => return address_response(0, 2, 1),
            // Not enabled, unset, then one of use.
            (3, 56, 0) => return address_response(7, 0, 0),
            (3, 56, 1) => return [&[0, 0x11, 1, 0x80], &[0; 18][..]].concat(),
            (3, 56, 2) => return address_response(8, 0x80, 0),
            _ => return vec![0x80],
        };
        [&[0, 0x11], value].concat()
    }

    fn address_response(end: u8, source: u8, status: u8) -> Vec<u8> {
        let mut address: [u8; 16] = "2001:db8::".parse::<Ipv6Addr>().unwrap().octets();
        address[15] = end;
        [&[0, 0x11, 0, source], &address[..], &[64, status]].concat()
    }

    #[test]
    fn the_first_addresses_of_use_are_found() {
        let addresses = BmcAddresses::ask(|command| Some(controller(command)));
        assert_eq!(addresses.v4_text(), "10.0.0.9");
        assert_eq!(addresses.v6_text(), "2001:db8::8");
    }

    #[test]
    fn a_silent_controller_has_none() {
        for response in [
            None,
            Some(Vec::new()),
            Some(vec![0xc1]),
            Some(vec![0, 1, 4]),
        ] {
            let mut count = 0;
            let addresses = BmcAddresses::ask(|_| {
                count += 1;
                response.clone()
            });
            assert_eq!(addresses, BmcAddresses::default());
            assert!(count <= 36);
        }
    }

    #[test]
    fn a_host_without_a_device_has_the_peer_s_texts() {
        let root = tempfile::tempdir().unwrap();
        let addresses = BmcAddresses::read(&HostFiles::below(root.path()));
        assert_eq!(addresses.v4_text(), "0.0.0.0");
        assert_eq!(addresses.v6_text(), "::/0");
    }

    #[test]
    fn another_file_is_no_device() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("dev")).unwrap();
        std::fs::write(root.path().join("dev/ipmi0"), "").unwrap();
        let addresses = BmcAddresses::read(&HostFiles::below(root.path()));
        assert_eq!(addresses, BmcAddresses::default());
    }
}
