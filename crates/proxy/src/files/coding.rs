//! Precompressed files: `FILE.br`, `FILE.zst` and `FILE.gz` beside `FILE`, for clients that accept them.

use http::{HeaderMap, header};

/// A content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ContentCoding {
    /// Its name in headers.
    pub(super) name: &'static str,
    /// End of the name of the file.
    pub(super) end: &'static str,
}

/// The shortest first.
const CODINGS: [ContentCoding; 3] = [
    ContentCoding {
        name: "br",
        end: ".br",
    },
    ContentCoding {
        name: "zstd",
        end: ".zst",
    },
    ContentCoding {
        name: "gzip",
        end: ".gz",
    },
];
/// Ends of names of files that are compressed already.
const COMPRESSED: [&str; 7] = [".br", ".bz2", ".gz", ".tgz", ".xz", ".zip", ".zst"];
/// Weight of a coding without one.
const FULL_WEIGHT: f32 = 1.0;

/// Whether a file may have a compressed one beside it.
pub(super) fn is_compressible(name: &[u8]) -> bool {
    !COMPRESSED.iter().any(|end| name.ends_with(end.as_bytes()))
}

/// The accepted codings, the preferred one first. Source: RFC 9110 §12.5.3.
pub(super) fn accepted(headers: &HeaderMap) -> Vec<ContentCoding> {
    let mut weights = [0.0; CODINGS.len()];
    let mut identity = 0.0;
    for value in headers.get_all(header::ACCEPT_ENCODING) {
        for item in value.to_str().unwrap_or_default().split(',') {
            let (name, parameters) = item.split_once(';').unwrap_or((item, ""));
            let name = name.trim();
            let weight = weight(parameters);
            if name.eq_ignore_ascii_case("identity") {
                identity = weight;
            }
            let found = CODINGS
                .iter()
                .position(|coding| name.eq_ignore_ascii_case(coding.name));
            if let Some(index) = found {
                weights[index] = weight;
            }
        }
    }
    let mut accepted: Vec<_> = CODINGS
        .into_iter()
        .zip(weights)
        .filter(|(_, weight)| *weight > 0.0 && *weight >= identity)
        .collect();
    accepted.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    accepted.into_iter().map(|(coding, _)| coding).collect()
}

/// The `q` among parameters; zero for one that is no number.
fn weight(parameters: &str) -> f32 {
    let mut parameters = parameters.split(';').map(str::trim);
    let Some(text) = parameters.find_map(|text| text.strip_prefix(['q', 'Q'])) else {
        return FULL_WEIGHT;
    };
    let number = text.trim_start().strip_prefix('=').map(str::trim);
    let number = number.and_then(|text| text.parse::<f32>().ok());
    number.map_or(0.0, |number| number.clamp(0.0, FULL_WEIGHT))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn codings_are_ordered_by_the_client_and_then_by_size() {
        for (header, expected) in [
            ("", &[][..]),
            ("gzip", &["gzip"]),
            ("gzip, deflate, br, zstd", &["br", "zstd", "gzip"]),
            ("GZIP;q=1.0, br;q=0.5", &["gzip", "br"]),
            ("br;q=0, gzip;q=0.001", &["gzip"]),
            ("identity, gzip;q=0.5", &[]),
            ("identity;q=0.5, gzip", &["gzip"]),
            ("*", &[]),
            ("gzip;q=x", &[]),
            ("gzip; q = 1", &["gzip"]),
        ] {
            let value = HeaderValue::from_static(header);
            let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, value)]);
            let names: Vec<_> = accepted(&headers).iter().map(|it| it.name).collect();
            assert_eq!(names, expected, "{header}");
        }
    }

    #[test]
    fn compressed_files_have_no_others() {
        assert!(is_compressible(b"a.json"));
        assert!(is_compressible(b"a.gz.txt"));
        assert!(!is_compressible(b"a.json.gz"));
    }
}
