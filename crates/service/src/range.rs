//! `Range` and `Content-Range`. Source: RFC 9110 §14.

use std::ops::Range;

/// More ranges than any client needs; a request for more gets the full content.
const MAX_RANGES: usize = 32;

/// The parts of a body that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RangeSet {
    /// All of it: an unknown unit, or ranges that add up to more.
    Full,
    /// These bytes, each range not empty and inside the body (206).
    Partial(Vec<Range<u64>>),
    /// No byte of the body (416).
    NotSatisfiable,
    /// No range at all: servers ignore the header or refuse it.
    Malformed,
}

impl RangeSet {
    /// Parses a `Range` header against a body of `size` bytes, as Go's `http.ServeContent` does.
    pub fn parse(header: &str, size: u64) -> Self {
        let Some((unit, ranges)) = header.split_once('=') else {
            return Self::Malformed;
        };
        if !unit.trim().eq_ignore_ascii_case("bytes") {
            return Self::Full;
        }
        let ranges = ranges.split(',').map(str::trim);
        let ranges = ranges.filter(|text| !text.is_empty());
        let ranges: Result<Vec<_>, Self> = ranges.map(|text| parse_one(text, size)).collect();
        let mut ranges = match ranges {
            Ok(ranges) if ranges.is_empty() => return Self::Malformed,
            Ok(ranges) => ranges,
            Err(refused) => return refused,
        };
        ranges.retain(|range| range.start < range.end);
        let asked = ranges
            .iter()
            .try_fold(0_u64, |sum, range| sum.checked_add(range.end - range.start));
        // Overlapping ranges that add up to more than the whole are an attack or a mistake.
        if ranges.len() > MAX_RANGES || asked.is_none_or(|sum| sum > size) {
            return Self::Full;
        }
        if ranges.is_empty() {
            return Self::NotSatisfiable;
        }
        Self::Partial(ranges)
    }
}

/// One range, empty beyond the end.
fn parse_one(text: &str, size: u64) -> Result<Range<u64>, RangeSet> {
    let (first, last) = text.split_once('-').ok_or(RangeSet::Malformed)?;
    let (first, last) = (first.trim(), last.trim());
    if first.is_empty() {
        let count = number(last).ok_or(RangeSet::Malformed)?;
        return Ok(size - count.min(size)..size);
    }
    let first = number(first).ok_or(RangeSet::Malformed)?;
    let end = if last.is_empty() {
        size
    } else {
        let last = number(last).ok_or(RangeSet::Malformed)?;
        if last < first {
            return Err(RangeSet::NotSatisfiable);
        }
        size.min(last.saturating_add(1))
    };
    Ok(first..end.max(first))
}

/// The part of a body that a request asks for, of a server that sends no several ranges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RangeRequest {
    /// All of it: no range, or one that need not be honoured (200).
    Full,
    /// These bytes, not empty and inside the body (206).
    Partial(Range<u64>),
    /// No byte of the body (416).
    NotSatisfiable,
}

impl RangeRequest {
    /// Parses a `Range` header against a body of `size` bytes.
    pub fn parse(header: Option<&str>, size: u64) -> Self {
        let single = header.filter(|text| !text.contains(','));
        match single.map(|text| RangeSet::parse(text, size)) {
            Some(RangeSet::Partial(ranges)) => {
                ranges.into_iter().next().map_or(Self::Full, Self::Partial)
            }
            Some(RangeSet::NotSatisfiable) => Self::NotSatisfiable,
            Some(RangeSet::Full | RangeSet::Malformed) | None => Self::Full,
        }
    }
}

/// The `Content-Range` of a part of a body of `size` bytes; of none, when the range is not satisfiable.
pub fn content_range(part: Option<&Range<u64>>, size: u64) -> String {
    match part {
        Some(part) => format!("bytes {}-{}/{size}", part.start, part.end - 1),
        None => format!("bytes */{size}"),
    }
}

/// Parses a `Content-Range`: `bytes first-last/total`, and `first-last` of an uploaded chunk.
pub fn piece(header: &str) -> Option<(u64, u64)> {
    let text = header.trim();
    let text = text
        .strip_prefix("bytes")
        .map_or(text, |rest| rest.trim_start_matches(['=', ' ']));
    let (range, _) = text.split_once('/').unwrap_or((text, ""));
    let (first, last) = range.split_once('-')?;
    let (first, last) = (number(first.trim())?, number(last.trim())?);
    (first <= last).then_some((first, last))
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
    fn ranges_of_ten_bytes() {
        for (header, expected) in [
            ("bytes=0-0", RangeRequest::Partial(0..1)),
            ("bytes=2-5", RangeRequest::Partial(2..6)),
            ("bytes=2-", RangeRequest::Partial(2..10)),
            ("bytes=2-99", RangeRequest::Partial(2..10)),
            ("bytes=-3", RangeRequest::Partial(7..10)),
            ("bytes=-99", RangeRequest::Partial(0..10)),
            ("bytes=10-", RangeRequest::NotSatisfiable),
            ("bytes=10-12", RangeRequest::NotSatisfiable),
            ("bytes=-0", RangeRequest::NotSatisfiable),
            ("bytes=5-2", RangeRequest::NotSatisfiable),
            ("bytes=a-b", RangeRequest::Full),
            ("bytes=20-b", RangeRequest::Full),
            ("bytes=0-1,3-4", RangeRequest::Full),
            ("bytes=+1-2", RangeRequest::Full),
            ("lines=1-2", RangeRequest::Full),
            ("", RangeRequest::Full),
        ] {
            assert_eq!(RangeRequest::parse(Some(header), 10), expected, "{header}");
        }
        assert_eq!(RangeRequest::parse(None, 10), RangeRequest::Full);
        assert_eq!(
            RangeRequest::parse(Some("bytes=0-"), 0),
            RangeRequest::NotSatisfiable
        );
        assert_eq!(
            RangeRequest::parse(Some("bytes=-1"), 0),
            RangeRequest::NotSatisfiable
        );
    }

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
            ("bytes=", RangeSet::Malformed),
            ("bytes=5-4", RangeSet::NotSatisfiable),
            ("bytes=+1-2", RangeSet::Malformed),
            ("bytes=a-b", RangeSet::Malformed),
            ("bytes=1", RangeSet::Malformed),
            ("rubbish", RangeSet::Malformed),
            ("items=0-5", RangeSet::Full),
            ("bytes=0-60,0-60", RangeSet::Full),
        ] {
            assert_eq!(RangeSet::parse(header, 100), expected, "{header}");
        }
        assert_eq!(RangeSet::parse("bytes=0-", 0), RangeSet::NotSatisfiable);
    }

    #[test]
    fn pieces() {
        assert_eq!(piece("0-9"), Some((0, 9)));
        assert_eq!(piece("bytes 10-19/100"), Some((10, 19)));
        assert_eq!(piece("bytes=1-2"), Some((1, 2)));
        for wrong in ["", "-", "9-0", "a-b", "1-", "-1", "+1-2"] {
            assert_eq!(piece(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn partial_ranges_are_inside_the_body(first in prop::option::of(any::<u64>()), last in prop::option::of(any::<u64>()), size: u64) {
            let text = |n: Option<u64>| n.map_or(String::new(), |n| n.to_string());
            let header = format!("bytes={}-{}", text(first), text(last));
            if let RangeRequest::Partial(part) = RangeRequest::parse(Some(&header), size) {
                prop_assert!(part.start < part.end && part.end <= size);
            }
        }

        #[test]
        fn any_header_is_read_or_refused(text in "\\PC{0,30}", size: u64) {
            RangeRequest::parse(Some(&text), size);
            RangeRequest::parse(Some(&format!("bytes={text}")), size);
            piece(&text);
        }

        #[test]
        fn ranges_are_within_the_length(header in "(bytes=)?[0-9, a-z-]{0,40}", length in 0..1000_u64) {
            if let RangeSet::Partial(parts) = RangeSet::parse(&header, length) {
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
            prop_assert_eq!(RangeSet::parse(&header, 10_000), RangeSet::Partial(vec![whole]));
        }
    }
}
