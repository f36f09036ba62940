//! Validity periods of certificates, read from their DER.
//!
//! Source: RFC 5280, 4.1 (the order of fields) and 4.1.2.5 (times); X.690, 8.1 (lengths).

use std::time::Duration;

use chrono::NaiveDateTime;
use rustls::CertificateError;
use rustls::pki_types::UnixTime;

const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
/// Context-specific and constructed, number 0.
const VERSION: u8 = 0xa0;

/// A validity period, including both ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Validity {
    not_before: UnixTime,
    not_after: UnixTime,
}

impl Validity {
    /// The period of a certificate; `None` when `der` is malformed.
    pub(super) fn of(der: &[u8]) -> Option<Self> {
        let (certificate, _) = element(der, SEQUENCE)?;
        let (mut rest, _) = element(certificate, SEQUENCE)?;
        if let Some((_, behind)) = element(rest, VERSION) {
            rest = behind;
        }
        // Serial number, signature algorithm, issuer.
        for tag in [INTEGER, SEQUENCE, SEQUENCE] {
            (_, rest) = element(rest, tag)?;
        }
        let (validity, _) = element(rest, SEQUENCE)?;
        let (not_before, rest) = time(validity)?;
        let (not_after, rest) = time(rest)?;
        rest.is_empty().then_some(Self {
            not_before,
            not_after,
        })
    }

    /// Errors: `time` is outside the period.
    pub(super) fn check(&self, time: UnixTime) -> Result<(), CertificateError> {
        let Self {
            not_before,
            not_after,
        } = *self;
        if time < not_before {
            return Err(CertificateError::NotValidYetContext { time, not_before });
        }
        if time > not_after {
            return Err(CertificateError::ExpiredContext { time, not_after });
        }
        Ok(())
    }
}

/// The content of the first element of `input`, which must have `tag`, and the bytes after it.
fn element(input: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = input.split_first()?;
    let (&length, rest) = rest.split_first()?;
    if found != tag {
        return None;
    }
    if length < 0x80 {
        return rest.split_at_checked(length.into());
    }
    // The number of length bytes; 0 would be the indefinite form, which DER forbids.
    let count = usize::from(length & 0x7f);
    if !(1..=4).contains(&count) {
        return None;
    }
    let (bytes, rest) = rest.split_at_checked(count)?;
    let length = bytes
        .iter()
        .fold(0_u64, |length, byte| length << 8 | u64::from(*byte));
    rest.split_at_checked(usize::try_from(length).ok()?)
}

/// The time at the start of `input`, and the bytes after it.
fn time(input: &[u8]) -> Option<(UnixTime, &[u8])> {
    let (digits, rest) = element(input, UTC_TIME)
        .or_else(|| element(input, GENERALIZED_TIME))
        .map(|(text, rest)| (text.strip_suffix(b"Z"), rest))?;
    let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    let digits = str::from_utf8(digits).ok()?;
    let text = match (input[0], digits.len()) {
        (UTC_TIME, 12) if digits < "50" => format!("20{digits}"),
        (UTC_TIME, 12) => format!("19{digits}"),
        (GENERALIZED_TIME, 14) => digits.to_owned(),
        _ => return None,
    };
    let time = NaiveDateTime::parse_from_str(&text, "%Y%m%d%H%M%S").ok()?;
    // Times before 1970 are in the past either way.
    let seconds = u64::try_from(time.and_utc().timestamp()).unwrap_or(0);
    Some((
        UnixTime::since_unix_epoch(Duration::from_secs(seconds)),
        rest,
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn der(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        let mut bytes = match length {
            [0, short @ 0..0x80] => vec![tag, short],
            [0, long] => vec![tag, 0x81, long],
            [high, low] => vec![tag, 0x82, high, low],
        };
        bytes.extend_from_slice(content);
        bytes
    }

    fn certificate(version: bool, issuer_bytes: usize, times: &[Vec<u8>]) -> Vec<u8> {
        let version = if version {
            der(VERSION, &der(INTEGER, &[2]))
        } else {
            Vec::new()
        };
        let fields = [
            version,
            der(INTEGER, &[1; 20]),
            der(SEQUENCE, &[]),
            der(SEQUENCE, &vec![0; issuer_bytes]),
            der(SEQUENCE, &times.concat()),
            der(SEQUENCE, &[]),
        ];
        der(SEQUENCE, &der(SEQUENCE, &fields.concat()))
    }

    fn utc(text: &str) -> Vec<u8> {
        der(UTC_TIME, text.as_bytes())
    }

    fn generalized(text: &str) -> Vec<u8> {
        der(GENERALIZED_TIME, text.as_bytes())
    }

    fn at(seconds: u64) -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_secs(seconds))
    }

    #[test]
    fn both_notations_are_read() {
        for (version, issuer_bytes) in [(true, 9), (false, 200), (true, 1000)] {
            let times = [utc("260102030405Z"), generalized("20500101000000Z")];
            let read = Validity::of(&certificate(version, issuer_bytes, &times));
            let expected = Validity {
                not_before: at(1_767_323_045),
                not_after: at(2_524_608_000),
            };
            assert_eq!(read, Some(expected), "{issuer_bytes}");
        }
        let times = [utc("500101000000Z"), utc("991231235959Z")];
        let old = Validity::of(&certificate(true, 9, &times)).unwrap();
        assert_eq!((old.not_before, old.not_after), (at(0), at(946_684_799)));
    }

    #[test]
    fn malformed_times_are_refused() {
        let good = || utc("260102030405Z");
        for wrong in [
            utc("260102030405"),
            utc("2601020304Z"),
            utc("20260102030405Z"),
            utc("261302030405Z"),
            utc("26010203040+Z"),
            generalized("260102030405Z"),
            generalized("20260102030405.5Z"),
            generalized("20260230000000Z"),
            der(INTEGER, b"260102030405Z"),
        ] {
            let times = [good(), wrong.clone()];
            assert_eq!(
                Validity::of(&certificate(true, 9, &times)),
                None,
                "{wrong:?}"
            );
            let times = [wrong, good()];
            assert_eq!(Validity::of(&certificate(true, 9, &times)), None);
        }
        assert_eq!(Validity::of(&certificate(true, 9, &[good()])), None);
        let three = [good(), good(), good()];
        assert_eq!(Validity::of(&certificate(true, 9, &three)), None);
    }

    #[test]
    fn both_ends_are_valid() {
        let validity = Validity {
            not_before: at(10),
            not_after: at(20),
        };
        assert!(validity.check(at(10)).is_ok() && validity.check(at(20)).is_ok());
        assert!(matches!(
            validity.check(at(9)),
            Err(CertificateError::NotValidYetContext { .. })
        ));
        assert!(matches!(
            validity.check(at(21)),
            Err(CertificateError::ExpiredContext { .. })
        ));
    }

    #[test]
    fn a_truncated_certificate_is_refused() {
        let times = [utc("260102030405Z"), utc("270102030405Z")];
        let whole = certificate(true, 200, &times);
        for end in 0..whole.len() {
            assert_eq!(Validity::of(&whole[..end]), None, "{end}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(bytes: Vec<u8>, at in 0_usize..120, byte: u8) {
            let _ = Validity::of(&bytes);
            let times = [utc("260102030405Z"), utc("270102030405Z")];
            let mut certificate = certificate(true, 9, &times);
            let at = at % certificate.len();
            certificate[at] = byte;
            let _ = Validity::of(&certificate);
        }
    }
}
