//! Encodings that every parser of DER reads alike: lenient parsers accept more than the signer's.
//! Source: ITU-T X.690, 8.1 and 10.

/// Levels of a certificate request: its alternative names are the deepest.
const DEPTH_LIMIT: usize = 16;
const CONSTRUCTED: u8 = 0x20;
const BIT_STRING: u8 = 3;
const OCTET_STRING: u8 = 4;
const SEQUENCE: u8 = 16;
const SET: u8 = 17;

/// Whether the bytes are whole elements with the one form of DER: short tags, shortest lengths, sequences and sets
/// constructed, all other universal types primitive, no surplus bits, no end of contents. Octet strings have to hold elements, too: those
/// of a certificate request are values of extensions.
pub(super) fn is_strict(der: &[u8]) -> bool {
    are_elements(der, DEPTH_LIMIT)
}

fn are_elements(mut der: &[u8], depth: usize) -> bool {
    while !der.is_empty() {
        let Some((tag, content, rest)) = element(der) else {
            return false;
        };
        let is_universal = tag >> 6 == 0;
        let number = tag & 0x1f;
        let is_constructed = tag & CONSTRUCTED != 0;
        let must_nest = matches!(number, SEQUENCE | SET);
        if is_universal && (number == 0 || is_constructed != must_nest) {
            return false;
        }
        let is_nested = is_constructed || tag == OCTET_STRING;
        if is_nested && (depth == 0 || !are_elements(content, depth - 1)) {
            return false;
        }
        if tag == BIT_STRING && content.first() != Some(&0) {
            return false;
        }
        der = rest;
    }
    true
}

/// Tag, content and the bytes after the first element.
pub(super) fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => {
            let (&low, rest) = rest.split_first()?;
            (low >= 0x80).then_some((usize::from(low), rest))?
        }
        0x82 => {
            let (&[high, low], rest) = rest.split_first_chunk()?;
            (high > 0).then_some((usize::from(u16::from_be_bytes([high, low])), rest))?
        }
        // More than a request may have.
        _ => return None,
    };
    let is_short_tag = tag & 0x1f != 0x1f;
    let (content, rest) = rest.split_at_checked(length)?;
    is_short_tag.then_some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_form_of_each_element_is_accepted() {
        let table: &[(&[u8], bool)] = &[
            (&[], true),
            (&[0x30, 0], true),
            (&[0x10, 0], false),
            (&[0, 0], false),
            (&[0x31, 2, 5, 0], true),
            (&[0x11, 2, 5, 0], false),
            (&[0x25, 0], false),
            (&[0x24, 0], false),
            (&[0xa0, 2, 5, 0], true),
            (&[0x80, 1, 7], true),
            (&[0x1f, 1, 7], false),
            (&[4, 2, 0x30, 0], true),
            (&[4, 1, 7], false),
            (&[3, 2, 0, 7], true),
            (&[3, 2, 1, 7], false),
            (&[3, 0], false),
            (&[2, 0x81, 1, 7], false),
            (&[2, 0x80, 0, 0], false),
            (&[2, 2, 7], false),
            (&[2], false),
        ];
        for (der, expected) in table {
            assert_eq!(is_strict(der), *expected, "{der:x?}");
        }
        let long = |header: &[u8], length: usize| {
            let mut der = header.to_vec();
            der.resize(header.len() + length, 0);
            is_strict(&der)
        };
        assert!(long(&[2, 0x7f], 0x7f));
        assert!(long(&[2, 0x81, 0x80], 0x80));
        assert!(long(&[2, 0x82, 1, 0], 0x100));
        assert!(!long(&[2, 0x82, 0, 0xff], 0xff));
        assert!(!long(&[2, 0x83, 1, 0, 0], 0x10000));
    }

    #[test]
    fn deep_nesting_is_refused() {
        let nested = |levels: usize| {
            (0..levels).fold(Vec::new(), |content, _| {
                let length = u8::try_from(content.len()).unwrap();
                [vec![0x30, length], content].concat()
            })
        };
        assert!(is_strict(&nested(DEPTH_LIMIT)));
        assert!(!is_strict(&nested(DEPTH_LIMIT + 1)));
    }
}
