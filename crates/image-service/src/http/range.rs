//! The `Range` header.

use std::ops::Range;

/// More ranges than any client needs; whoever asks for more gets the whole.
const MAX_RANGES: usize = 32;

/// What a header asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asked {
    /// Everything: no header, an unknown unit, or ranges that together are no less than everything.
    Whole,
    /// These bytes, each range not empty and within the length.
    Parts(Vec<Range<u64>>),
    /// Nothing that exists, or the header makes no sense.
    Nothing,
}

/// Reads a header for a representation of `length` bytes.
pub(super) fn parse(header: &str, length: u64) -> Asked {
    let Some((unit, ranges)) = header.split_once('=') else {
        return Asked::Nothing;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Asked::Whole;
    }
    let mut parts = Vec::new();
    let mut is_empty = true;
    for text in ranges.split(',').map(str::trim) {
        if text.is_empty() {
            continue;
        }
        is_empty = false;
        match parse_one(text, length) {
            None => return Asked::Nothing,
            Some(range) if range.start < range.end => parts.push(range),
            Some(_) => {}
        }
    }
    let asked = parts
        .iter()
        .try_fold(0_u64, |sum, range| sum.checked_add(range.end - range.start));
    if is_empty || parts.is_empty() {
        return Asked::Nothing;
    }
    // Overlapping ranges that add up to more than the whole are an attack or a mistake.
    if parts.len() > MAX_RANGES || asked.is_none_or(|sum| sum > length) {
        return Asked::Whole;
    }
    Asked::Parts(parts)
}

/// The bytes of one range, empty when it lies beyond the end; none when it makes no sense.
fn parse_one(text: &str, length: u64) -> Option<Range<u64>> {
    let (first, last) = text.split_once('-')?;
    let (first, last) = (first.trim(), last.trim());
    if first.is_empty() {
        let count = number(last)?;
        return Some(length - count.min(length)..length);
    }
    let first = number(first)?;
    let end = if last.is_empty() {
        length
    } else {
        let last = number(last)?;
        if last < first {
            return None;
        }
        length.min(last.saturating_add(1))
    };
    Some(first..end.max(first))
}

/// Digits only: no sign. What does not fit is as good as the largest number.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    #[expect(
        clippy::single_range_in_vec_init,
        reason = "lists of ranges are compared"
    )]
    fn every_form_is_understood() {
        for (header, expected) in [
            ("bytes=0-0", Asked::Parts(vec![0..1])),
            ("bytes=5-", Asked::Parts(vec![5..100])),
            ("bytes=-5", Asked::Parts(vec![95..100])),
            ("bytes=-500", Asked::Parts(vec![0..100])),
            ("bytes=90-1000", Asked::Parts(vec![90..100])),
            ("Bytes = 1-2 , 4-5,", Asked::Parts(vec![1..3, 4..6])),
            ("bytes=1-2,200-300", Asked::Parts(vec![1..3])),
            (
                "bytes=0-99999999999999999999999",
                Asked::Parts(vec![0..100]),
            ),
            ("bytes=100-", Asked::Nothing),
            ("bytes=-0", Asked::Nothing),
            ("bytes=", Asked::Nothing),
            ("bytes=5-4", Asked::Nothing),
            ("bytes=+1-2", Asked::Nothing),
            ("bytes=a-b", Asked::Nothing),
            ("bytes=1", Asked::Nothing),
            ("rubbish", Asked::Nothing),
            ("items=0-5", Asked::Whole),
            ("bytes=0-60,0-60", Asked::Whole),
        ] {
            assert_eq!(parse(header, 100), expected, "{header}");
        }
        assert_eq!(parse("bytes=0-", 0), Asked::Nothing);
    }

    proptest! {
        #[test]
        fn parts_lie_within(header in "(bytes=)?[0-9, a-z-]{0,40}", length in 0..1000_u64) {
            if let Asked::Parts(parts) = parse(&header, length) {
                prop_assert!(!parts.is_empty());
                for range in parts {
                    prop_assert!(range.start < range.end && range.end <= length);
                }
            }
        }

        #[test]
        fn a_printed_range_is_read(start in 0..1000_u64, count in 1..1000_u64) {
            let header = format!("bytes={start}-{}", start + count - 1);
            let whole = start..start + count;
            prop_assert_eq!(parse(&header, 10_000), Asked::Parts(vec![whole]));
        }
    }
}
