//! The `Range` header with several ranges. Source: RFC 9110 §14, as Go's `http.ServeContent` implements it.

use std::ops::Range;

/// More ranges than any client needs; a request for more gets the full content.
const MAX_RANGES: usize = 32;

/// Ranges of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RangeSet {
    /// All of it: no header, an unknown unit, or ranges that add up to more.
    Full,
    /// These bytes, each range not empty and within the length.
    Partial(Vec<Range<u64>>),
    /// No existing byte, or a malformed header (416).
    NotSatisfiable,
}

/// Parses a header for a representation of `length` bytes.
pub(super) fn parse(header: &str, length: u64) -> RangeSet {
    let Some((unit, ranges)) = header.split_once('=') else {
        return RangeSet::NotSatisfiable;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return RangeSet::Full;
    }
    let mut parts = Vec::new();
    let mut is_empty = true;
    for text in ranges.split(',').map(str::trim) {
        if text.is_empty() {
            continue;
        }
        is_empty = false;
        match parse_one(text, length) {
            None => return RangeSet::NotSatisfiable,
            Some(range) if range.start < range.end => parts.push(range),
            Some(_) => {}
        }
    }
    let asked = parts
        .iter()
        .try_fold(0_u64, |sum, range| sum.checked_add(range.end - range.start));
    if is_empty || parts.is_empty() {
        return RangeSet::NotSatisfiable;
    }
    // Overlapping ranges that add up to more than the whole are an attack or a mistake.
    if parts.len() > MAX_RANGES || asked.is_none_or(|sum| sum > length) {
        return RangeSet::Full;
    }
    RangeSet::Partial(parts)
}

/// One range, empty beyond the end; absent when malformed.
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

/// Digits only: no sign. Saturates at the largest number.
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
            ("bytes=0-0", RangeSet::Partial(vec![0..1])),
            ("bytes=5-", RangeSet::Partial(vec![5..100])),
            ("bytes=-5", RangeSet::Partial(vec![95..100])),
            ("bytes=-500", RangeSet::Partial(vec![0..100])),
            ("bytes=90-1000", RangeSet::Partial(vec![90..100])),
            ("Bytes = 1-2 , 4-5,", RangeSet::Partial(vec![1..3, 4..6])),
            ("bytes=1-2,200-300", RangeSet::Partial(vec![1..3])),
            (
                "bytes=0-99999999999999999999999",
                RangeSet::Partial(vec![0..100]),
            ),
            ("bytes=100-", RangeSet::NotSatisfiable),
            ("bytes=-0", RangeSet::NotSatisfiable),
            ("bytes=", RangeSet::NotSatisfiable),
            ("bytes=5-4", RangeSet::NotSatisfiable),
            ("bytes=+1-2", RangeSet::NotSatisfiable),
            ("bytes=a-b", RangeSet::NotSatisfiable),
            ("bytes=1", RangeSet::NotSatisfiable),
            ("rubbish", RangeSet::NotSatisfiable),
            ("items=0-5", RangeSet::Full),
            ("bytes=0-60,0-60", RangeSet::Full),
        ] {
            assert_eq!(parse(header, 100), expected, "{header}");
        }
        assert_eq!(parse("bytes=0-", 0), RangeSet::NotSatisfiable);
    }

    proptest! {
        #[test]
        fn ranges_are_within_the_length(header in "(bytes=)?[0-9, a-z-]{0,40}", length in 0..1000_u64) {
            if let RangeSet::Partial(parts) = parse(&header, length) {
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
            prop_assert_eq!(parse(&header, 10_000), RangeSet::Partial(vec![whole]));
        }
    }
}
