//! `Range` of downloads and `Content-Range` of uploads.

/// What a request wants of a body of a given size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// All of it: no range, or one that does not have to be honoured.
    Whole,
    /// From the first to the last byte, both included.
    Part(u64, u64),
    /// Nothing that is there.
    Nothing,
}

/// Reads a `Range` header against a body of `size` bytes. Source: RFC 9110 §14; several ranges are not honoured.
pub fn wanted(header: Option<&str>, size: u64) -> Wanted {
    let Some(spec) = header.and_then(|text| text.trim().strip_prefix("bytes=")) else {
        return Wanted::Whole;
    };
    let Some((first, last)) = spec.split_once('-') else {
        return Wanted::Whole;
    };
    match (number(first), number(last)) {
        (Number::Is(first), Number::Is(last)) if last < first => Wanted::Nothing,
        (Number::Is(first), _) if first >= size && !matches!(number(last), Number::Wrong) => {
            Wanted::Nothing
        }
        (Number::Is(first), Number::Is(last)) => Wanted::Part(first, last.min(size - 1)),
        (Number::Is(first), Number::Absent) => Wanted::Part(first, size - 1),
        (Number::Absent, Number::Is(0)) => Wanted::Nothing,
        (Number::Absent, Number::Is(_)) if size == 0 => Wanted::Nothing,
        (Number::Absent, Number::Is(length)) => Wanted::Part(size.saturating_sub(length), size - 1),
        _ => Wanted::Whole,
    }
}

/// Reads the `Content-Range` of a piece: `first-last`, also as `bytes first-last/total`.
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
            ("bytes=0-0", Wanted::Part(0, 0)),
            ("bytes=2-5", Wanted::Part(2, 5)),
            ("bytes=2-", Wanted::Part(2, 9)),
            ("bytes=2-99", Wanted::Part(2, 9)),
            ("bytes=-3", Wanted::Part(7, 9)),
            ("bytes=-99", Wanted::Part(0, 9)),
            ("bytes=10-", Wanted::Nothing),
            ("bytes=10-12", Wanted::Nothing),
            ("bytes=-0", Wanted::Nothing),
            ("bytes=5-2", Wanted::Nothing),
            ("bytes=a-b", Wanted::Whole),
            ("bytes=20-b", Wanted::Whole),
            ("bytes=0-1,3-4", Wanted::Whole),
            ("bytes=+1-2", Wanted::Whole),
            ("lines=1-2", Wanted::Whole),
            ("", Wanted::Whole),
        ] {
            assert_eq!(wanted(Some(header), 10), expected, "{header}");
        }
        assert_eq!(wanted(None, 10), Wanted::Whole);
        assert_eq!(wanted(Some("bytes=0-"), 0), Wanted::Nothing);
        assert_eq!(wanted(Some("bytes=-1"), 0), Wanted::Nothing);
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
        fn parts_lie_inside(first in prop::option::of(any::<u64>()), last in prop::option::of(any::<u64>()), size: u64) {
            let text = |n: Option<u64>| n.map_or(String::new(), |n| n.to_string());
            let header = format!("bytes={}-{}", text(first), text(last));
            if let Wanted::Part(first, last) = wanted(Some(&header), size) {
                prop_assert!(first <= last && last < size);
            }
        }

        #[test]
        fn any_header_is_read_or_refused(text in "\\PC{0,30}", size: u64) {
            wanted(Some(&text), size);
            wanted(Some(&format!("bytes={text}")), size);
            piece(&text);
        }
    }
}
