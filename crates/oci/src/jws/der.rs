//! The subset of DER that keys need. Source: X.690.

use model::Error;

pub(super) const INTEGER: u8 = 2;
pub(super) const BIT_STRING: u8 = 3;
pub(super) const OCTET_STRING: u8 = 4;
pub(super) const SEQUENCE: u8 = 0x30;

/// The content of the first element, and the bytes after it.
///
/// Errors: Invalid – another tag, or a truncated element.
pub(super) fn take(tag: u8, bytes: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    let damaged = || Error::invalid("signature", "the key is damaged");
    let [found, first, rest @ ..] = bytes else {
        return Err(damaged());
    };
    if *found != tag {
        return Err(damaged());
    }
    let (length, rest) = match (first, rest) {
        (0..=0x7f, rest) => (usize::from(*first), rest),
        (0x81, [low, rest @ ..]) => (usize::from(*low), rest),
        (0x82, [high, low, rest @ ..]) => (usize::from(u16::from_be_bytes([*high, *low])), rest),
        _ => return Err(damaged()),
    };
    rest.split_at_checked(length).ok_or_else(damaged)
}

/// `SEQUENCE { INTEGER n, INTEGER e }`. Source: RFC 8017, A.1.1.
pub(super) fn rsa_public_key(n: &[u8], e: &[u8]) -> Vec<u8> {
    element(SEQUENCE, &[integer(n), integer(e)].concat())
}

/// Modulus and exponent of an RSA key.
///
/// Errors: Invalid.
pub(super) fn rsa_public_key_parts(key: &[u8]) -> Result<[&[u8]; 2], Error> {
    let (numbers, _) = take(SEQUENCE, key)?;
    let (n, rest) = take(INTEGER, numbers)?;
    let (e, _) = take(INTEGER, rest)?;
    Ok([n, e].map(|number| number.strip_prefix(&[0]).unwrap_or(number)))
}

/// A positive integer, padded with a zero byte where the first bit would make it negative.
fn integer(number: &[u8]) -> Vec<u8> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    let number = &number[zeros..];
    let sign: &[u8] = match number.first() {
        Some(0..0x80) => &[],
        _ => &[0],
    };
    element(INTEGER, &[sign, number].concat())
}

/// An element of up to 65 535 bytes, longer than any key.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let [.., high, low] = content.len().to_be_bytes();
    let head = match content.len() {
        0..0x80 => vec![tag, low],
        0x80..0x100 => vec![tag, 0x81, low],
        _ => vec![tag, 0x82, high, low],
    };
    [head, content.to_vec()].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_read_as_written(n in proptest::collection::vec(any::<u8>(), 1..600), e in 1_u32..) {
            let n = [&[1], n.as_slice()].concat();
            let e = e.to_be_bytes();
            let key = rsa_public_key(&n, &e);
            let zeros = e.iter().take_while(|byte| **byte == 0).count();
            prop_assert_eq!(rsa_public_key_parts(&key).unwrap(), [&n[..], &e[zeros..]]);
        }

        #[test]
        fn anything_is_read_or_refused(bytes: Vec<u8>, tag: u8) {
            if let Ok((content, rest)) = take(tag, &bytes) {
                prop_assert!(content.len() + rest.len() + 2 <= bytes.len());
            }
        }
    }
}
