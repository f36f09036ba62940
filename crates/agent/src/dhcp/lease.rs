//! Leases in the format of dhclient, which the service stores and hands to the nodes: keepalived's monitor renews them
//! there by dhclient.
//!
//! Source: dhclient.leases(5).

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use model::time::Timestamp;

use super::message::{
    BROADCAST_ADDRESS, DOMAIN_NAME, LEASE_TIME, MESSAGE_KIND, NAME_SERVERS, REBINDING_TIME,
    RENEWAL_TIME, ROUTERS, SERVER, SUBNET_MASK, ServerMessage,
};

/// Longest printed option: the service refuses leases of more than 4 KiB, and a byte becomes four characters. Units: bytes.
const MAX_OPTION: usize = 128;
/// A lease time that never ends. Source: RFC 2131, section 3.3.
const INFINITE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
enum OptionFormat {
    Addresses,
    Seconds,
    Byte,
    Text,
}

/// Options that a lease has, by the names of dhcp-options(5).
const OPTIONS: [(u8, &str, OptionFormat); 10] = [
    (SUBNET_MASK, "subnet-mask", OptionFormat::Addresses),
    (ROUTERS, "routers", OptionFormat::Addresses),
    (LEASE_TIME, "dhcp-lease-time", OptionFormat::Seconds),
    (MESSAGE_KIND, "dhcp-message-type", OptionFormat::Byte),
    (NAME_SERVERS, "domain-name-servers", OptionFormat::Addresses),
    (SERVER, "dhcp-server-identifier", OptionFormat::Addresses),
    (RENEWAL_TIME, "dhcp-renewal-time", OptionFormat::Seconds),
    (
        BROADCAST_ADDRESS,
        "broadcast-address",
        OptionFormat::Addresses,
    ),
    (REBINDING_TIME, "dhcp-rebinding-time", OptionFormat::Seconds),
    (DOMAIN_NAME, "domain-name", OptionFormat::Text),
];

/// An address with the options that came with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DhcpLease {
    message: ServerMessage,
    lease_s: u32,
}

impl DhcpLease {
    /// None for a message without an address or a lease time.
    pub(super) fn new(message: ServerMessage) -> Option<Self> {
        let lease_s = message.seconds_option(LEASE_TIME)?;
        (!message.address.is_unspecified()).then_some(Self { message, lease_s })
    }

    pub(crate) fn address(&self) -> Ipv4Addr {
        self.message.address
    }

    /// The text for a network interface with this name, of a lease that begins now.
    pub(crate) fn text(&self, interface: &str, now: Timestamp) -> String {
        let mut text = format!(
            "lease {{\n  interface \"{interface}\";\n  fixed-address {};\n",
            self.address()
        );
        for (code, name, format) in OPTIONS {
            let value = self.message.option(code);
            let value = value.filter(|value| !value.is_empty() && value.len() <= MAX_OPTION);
            if let Some(value) = value.and_then(|value| print(value, format)) {
                let _ = writeln!(text, "  option {name} {value};");
            }
        }
        let half = self.lease_s / 2;
        let renewal = self.message.seconds_option(RENEWAL_TIME).unwrap_or(half);
        let most = self.lease_s - self.lease_s / 8;
        let rebinding = self.message.seconds_option(REBINDING_TIME).unwrap_or(most);
        for (name, seconds) in [
            ("renew", renewal),
            ("rebind", rebinding),
            ("expire", self.lease_s),
        ] {
            let _ = writeln!(text, "  {name} {};", self.time_after(now, seconds));
        }
        text.push_str("}\n");
        text
    }

    /// The day of the week, the date and the time.
    fn time_after(&self, now: Timestamp, seconds: u32) -> String {
        let time = now.checked_add_signed(chrono::TimeDelta::seconds(seconds.into()));
        match time {
            Some(time) if self.lease_s != INFINITE => {
                time.format("%w %Y/%m/%d %H:%M:%S").to_string()
            }
            _ => "never".to_owned(),
        }
    }
}

fn print(value: &[u8], format: OptionFormat) -> Option<String> {
    Some(match format {
        OptionFormat::Addresses => {
            let (addresses, []) = value.as_chunks::<4>() else {
                return None;
            };
            let addresses: Vec<String> = addresses
                .iter()
                .map(|address| Ipv4Addr::from(*address).to_string())
                .collect();
            addresses.join(",")
        }
        OptionFormat::Seconds => u32::from_be_bytes(value.try_into().ok()?).to_string(),
        OptionFormat::Byte => u8::from_be_bytes(value.try_into().ok()?).to_string(),
        OptionFormat::Text => quoted(value),
    })
}

/// Octal numbers for bytes that would end the text, or the statement, for simple readers such as the service.
fn quoted(value: &[u8]) -> String {
    let mut text = "\"".to_owned();
    for byte in value {
        match byte {
            b'"' | b'\\' | b';' | b'{' | b'}' => {
                let _ = write!(text, "\\{byte:03o}");
            }
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => {
                let _ = write!(text, "\\{byte:03o}");
            }
        }
    }
    text.push('"');
    text
}

/// The address in the last lease of a text.
pub(crate) fn leased_address(text: &str) -> Option<Ipv4Addr> {
    let statements = text.split([';', '{', '}']);
    let mut addresses = statements.filter_map(|statement| {
        let (name, value) = statement.trim().split_once(char::is_whitespace)?;
        (name == "fixed-address").then(|| value.trim().parse().ok())?
    });
    addresses.next_back()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::message::tests::answer;
    use super::*;

    fn lease(options: &[u8]) -> Option<DhcpLease> {
        DhcpLease::new(ServerMessage::parse(&answer(5, options)).unwrap())
    }

    fn now() -> Timestamp {
        Timestamp::from_timestamp(1_603_635_518, 0).unwrap()
    }

    #[test]
    fn leases_have_the_format_of_dhclient() {
        let lease = lease(&[
            51, 4, 0, 0, 14, 16, 54, 4, 10, 0, 0, 1, 1, 4, 255, 255, 255, 0, 6, 8, 10, 0, 0, 1, 10,
            0, 0, 2, 3, 3, 1, 1, 1, 58, 4, 0, 0, 6, 64, 15, 5, b'a', b'"', b';', 10, b'b',
        ]);
        insta::assert_snapshot!(lease.unwrap().text("api", now()), @r#"
        lease {
          interface "api";
          fixed-address 10.0.0.5;
          option subnet-mask 255.255.255.0;
          option dhcp-lease-time 3600;
          option dhcp-message-type 5;
          option domain-name-servers 10.0.0.1,10.0.0.2;
          option dhcp-server-identifier 10.0.0.1;
          option dhcp-renewal-time 1600;
          option domain-name "a\042\073\012b";
          renew 0 2020/10/25 14:45:18;
          rebind 0 2020/10/25 15:11:08;
          expire 0 2020/10/25 15:18:38;
        }
        "#);
    }

    #[test]
    fn long_leases_stay_below_the_service_s_limit() {
        let codes = OPTIONS.iter().map(|(code, ..)| *code);
        let longest = codes.filter(|code| ![LEASE_TIME, MESSAGE_KIND].contains(code));
        let mut options = vec![LEASE_TIME, 4, 0, 0, 14, 16];
        for code in longest {
            options.extend([code, 128]);
            options.extend([222; 128]);
        }
        let text = lease(&options).unwrap().text("ingress", now());
        assert!(text.contains("option routers 222.222.222.222,"), "{text}");
        assert!(text.contains("option domain-name \"\\336"), "{text}");
        assert!(text.len() <= 4 << 10, "{}", text.len());
    }

    proptest! {
        #[test]
        fn any_lease_is_printed(
            seconds in any::<u32>(), code in any::<u8>(), value in proptest::collection::vec(any::<u8>(), 0..64)
        ) {
            let mut options = vec![LEASE_TIME, 4];
            options.extend(seconds.to_be_bytes());
            options.extend([code, u8::try_from(value.len()).unwrap()]);
            options.extend(value);
            if let Some(lease) = ServerMessage::parse(&answer(5, &options)).and_then(DhcpLease::new) {
                let text = lease.text("api", now());
                prop_assert_eq!(leased_address(&text), Some(lease.address()));
                prop_assert_eq!(text.matches('}').count(), 1);
            }
        }
    }

    #[test]
    fn infinite_leases_never_end() {
        let text = lease(&[51, 4, 255, 255, 255, 255])
            .unwrap()
            .text("api", now());
        assert!(text.contains("renew never;\n  rebind never;\n  expire never;\n}"));
        assert_eq!(lease(&[]), None);
    }

    #[test]
    fn the_last_lease_has_the_address() {
        let lease = lease(&[51, 4, 0, 0, 14, 16]).unwrap();
        assert_eq!(
            leased_address(&lease.text("api", now())),
            Some(lease.address())
        );
        let two = "lease { fixed-address 10.0.0.1; }\nlease {\n\tfixed-address  10.0.0.2 ;\n}";
        assert_eq!(leased_address(two), Some([10, 0, 0, 2].into()));
        for text in [
            "",
            "lease { fixed-address x; }",
            "fixed-addresses 10.0.0.1;",
        ] {
            assert_eq!(leased_address(text), None, "{text}");
        }
    }
}
