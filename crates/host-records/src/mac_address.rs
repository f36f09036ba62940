//! MAC addresses as BareMetalHost has them: six octets, joined by colons.

use std::fmt;
use std::str::FromStr;

/// The address of a NIC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress([u8; 6]);

/// The reason why a text is not a usable MAC address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MacAddressError {
    /// Six octets in another form.
    #[error("has another form than six octets joined by colons")]
    Form(MacAddress),
    /// Not six octets.
    #[error("is not six octets in hexadecimal")]
    Length,
    /// The bit of groups is set.
    #[error("is a multicast address, which no NIC has")]
    Multicast,
    /// Only zeroes.
    #[error("is all zero, which no NIC has")]
    Zero,
}

impl MacAddress {
    /// The octets.
    pub const fn octets(self) -> [u8; 6] {
        self.0
    }
}

impl FromStr for MacAddress {
    type Err = MacAddressError;

    fn from_str(text: &str) -> Result<Self, MacAddressError> {
        let is_octet = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit());
        let has_form = text.split(':').all(is_octet);
        let digits: Vec<u8> = text
            .bytes()
            .filter(|byte| !b":-. ".contains(byte))
            .map(|byte| {
                char::from(byte)
                    .to_digit(16)
                    .and_then(|it| u8::try_from(it).ok())
            })
            .collect::<Option<_>>()
            .ok_or(MacAddressError::Length)?;
        let mut octets = [0; 6];
        if digits.len() != 2 * octets.len() {
            return Err(MacAddressError::Length);
        }
        for (octet, pair) in octets.iter_mut().zip(digits.chunks_exact(2)) {
            *octet = pair[0] << 4 | pair[1];
        }
        if octets == [0; 6] {
            return Err(MacAddressError::Zero);
        }
        if octets[0] & 1 == 1 {
            return Err(MacAddressError::Multicast);
        }
        if has_form {
            Ok(Self(octets))
        } else {
            Err(MacAddressError::Form(Self(octets)))
        }
    }
}

/// In lower case, joined by colons.
impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.map(|octet| format!("{octet:02x}")).join(":"))
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn forms() {
        let of = |text: &str| text.parse::<MacAddress>().map(|it| it.to_string());
        let good = || "52:54:00:0a:00:ff".to_owned();
        assert_eq!(of("52:54:00:0A:00:ff"), Ok(good()));
        for text in [
            "52-54-00-0a-00-ff",
            "5254.000a.00ff",
            "5254000a00ff",
            "52:54:00:0a:00ff",
        ] {
            let Err(MacAddressError::Form(meant)) = text.parse::<MacAddress>() else {
                panic!("{text}");
            };
            assert_eq!(meant.to_string(), good());
        }
        for (text, why) in [
            ("", MacAddressError::Length),
            ("52:54:00:0a:00", MacAddressError::Length),
            ("52:54:00:0a:00:ff:11", MacAddressError::Length),
            ("52:54:00:0a:00:fg", MacAddressError::Length),
            ("52:54:00:0a:00:f€", MacAddressError::Length),
            ("01:00:5e:00:00:01", MacAddressError::Multicast),
            ("ff:ff:ff:ff:ff:ff", MacAddressError::Multicast),
            ("00:00:00:00:00:00", MacAddressError::Zero),
        ] {
            assert_eq!(of(text), Err(why), "{text}");
        }
    }

    proptest! {
        #[test]
        fn printed_addresses_are_read_again(octets: [u8; 6]) {
            let address = MacAddress([octets[0] & 0xfe | 2, octets[1], octets[2], octets[3], octets[4], octets[5]]);
            prop_assert_eq!(address.to_string().parse(), Ok(address));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,24}|[0-9a-f:.-]{0,24}") {
            text.parse::<MacAddress>().ok();
        }
    }
}
