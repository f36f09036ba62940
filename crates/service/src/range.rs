//! `Range` of downloads and `Content-Range` of uploads.

/// The part of a body that a request asks for. Source: RFC 9110 §14.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeRequest {
    /// All of it: no range, or one that need not be honoured (200).
    Full,
    /// From the first to the last byte, both included (206).
    Partial(u64, u64),
    /// No byte of the body (416).
    NotSatisfiable,
}

impl RangeRequest {
    /// Reads a `Range` header against a body of `size` bytes. Source: RFC 9110 §14; several ranges are not honoured.
    pub fn parse(header: Option<&str>, size: u64) -> Self {
        let Some(spec) = header.and_then(|text| text.trim().strip_prefix("bytes=")) else {
            return Self::Full;
        };
        let Some((first, last)) = spec.split_once('-') else {
            return Self::Full;
        };
        match (number(first), number(last)) {
            (Number::Is(first), Number::Is(last)) if last < first => Self::NotSatisfiable,
            (Number::Is(first), _) if first >= size && !matches!(number(last), Number::Wrong) => {
                Self::NotSatisfiable
            }
            (Number::Is(first), Number::Is(last)) => Self::Partial(first, last.min(size - 1)),
            (Number::Is(first), Number::Absent) => Self::Partial(first, size - 1),
            (Number::Absent, Number::Is(0)) => Self::NotSatisfiable,
            (Number::Absent, Number::Is(_)) if size == 0 => Self::NotSatisfiable,
            (Number::Absent, Number::Is(length)) => {
                Self::Partial(size.saturating_sub(length), size - 1)
            }
            _ => Self::Full,
        }
    }
}

/// Parses the `Content-Range` of a chunk: `first-last`, also as `bytes first-last/total`.
pub fn piece(header: &str) -> Option<(u64, u64)> {
    let text = header.trim();
    let text = text
        .strip_prefix("bytes")
        .map_or(text, |rest| rest.trim_start_matches(['=', ' ']));
    let (range, _) = text.split_once('/').unwrap_or((text, ""));
    let (first, last) = range.split_once('-')?;
    match (number(first), number(last)) {
        (Number::Is(first), Number::Is(last)) if first <= last => Some((first, last)),
        _ => None,
    }
}

enum Number {
    Absent,
    Is(u64),
    Wrong,
}

fn number(text: &str) -> Number {
    let text = text.trim();
    if text.is_empty() {
        return Number::Absent;
    }
    // `parse` alone would take a sign.
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|_| digits)
        .map_or(Number::Wrong, Number::Is)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_of_ten_bytes() {
        for (header, expected) in [
            ("bytes=0-0", RangeRequest::Partial(0, 0)),
            ("bytes=2-5", RangeRequest::Partial(2, 5)),
            ("bytes=2-", RangeRequest::Partial(2, 9)),
            ("bytes=2-99", RangeRequest::Partial(2, 9)),
            ("bytes=-3", RangeRequest::Partial(7, 9)),
            ("bytes=-99", RangeRequest::Partial(0, 9)),
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
            if let RangeRequest::Partial(first, last) = RangeRequest::parse(Some(&header), size) {
                prop_assert!(first <= last && last < size);
            }
        }

        #[test]
        fn any_header_is_read_or_refused(text in "\\PC{0,30}", size: u64) {
            RangeRequest::parse(Some(&text), size);
            RangeRequest::parse(Some(&format!("bytes={text}")), size);
            piece(&text);
        }
    }
}
