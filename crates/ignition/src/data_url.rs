//! `data:` URLs: inline contents of a configuration.

use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::Error;

/// Units: bytes. More than any sensible file in a configuration unpacks to; stops a bomb.
pub const MAX_UNPACKED: u64 = 64 * 1024 * 1024;

/// Surplus bits of the last character may be set, as for Ignition.
pub(crate) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Everything but letters, digits and marks of RFC 2396, without quote and parentheses.
const NO_MARKS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*');
/// Unreserved characters of RFC 2396 are not escaped.
pub(crate) const RESERVED: &AsciiSet = &NO_MARKS.remove(b'\'').remove(b'(').remove(b')');
/// Characters that we escape: a slash stays readable.
const ESCAPED: &AsciiSet = &NO_MARKS.remove(b'/');

/// Whether the text has the scheme of a data URL.
pub fn is_data_url(text: &str) -> bool {
    scheme_end(text).is_some()
}

fn scheme_end(text: &str) -> Option<&str> {
    let scheme = text.get(..5)?;
    scheme.eq_ignore_ascii_case("data:").then(|| &text[5..])
}

/// Text with percent escapes, readable where it is plain.
pub fn text(contents: &str) -> String {
    format!("data:,{}", utf8_percent_encode(contents, ESCAPED))
}

/// Bytes in base64.
pub fn base64(contents: &[u8]) -> String {
    format!("data:;base64,{}", BASE64.encode(contents))
}

/// Bytes compressed, then in base64; the record needs `compression: gzip` beside it.
pub fn gzip_base64(contents: &[u8]) -> String {
    base64(&gzip(contents))
}

/// Compresses; the same input gives the same output.
pub(crate) fn gzip(contents: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder
        .write_all(contents)
        .and_then(|()| encoder.finish())
        .expect("a vector takes all bytes")
}

/// Decompresses gzip.
///
/// Errors: when the bytes are no gzip stream, or unpack to more than [`MAX_UNPACKED`].
pub fn gunzip(compressed: &[u8]) -> Result<Vec<u8>, Error> {
    let mut unpacked = Vec::new();
    let mut decoder = MultiGzDecoder::new(compressed).take(MAX_UNPACKED + 1);
    decoder
        .read_to_end(&mut unpacked)
        .map_err(|error| Error::DataUrl(format!("the contents are no gzip stream: {error}")))?;
    if unpacked.len() as u64 > MAX_UNPACKED {
        let reason = format!("the contents unpack to more than {MAX_UNPACKED} bytes");
        return Err(Error::DataUrl(reason));
    }
    Ok(unpacked)
}

/// Decodes a data URL.
///
/// Errors: when it is malformed, or its base64 or its escapes are broken.
pub fn decode(url: &str) -> Result<Vec<u8>, Error> {
    let rest = scheme_end(url)
        .ok_or_else(|| Error::DataUrl("does not start with \"data:\"".to_owned()))?;
    let (head, data) = rest
        .split_once(',')
        .ok_or_else(|| Error::DataUrl("has no comma before the data".to_owned()))?;
    check_escapes(data)?;
    let bytes: Vec<u8> = percent_decode_str(data).collect();
    let is_base64 = head
        .rsplit(';')
        .next()
        .is_some_and(|last| last.trim().eq_ignore_ascii_case("base64"));
    if !is_base64 {
        return Ok(bytes);
    }
    BASE64
        .decode(&bytes)
        .map_err(|error| Error::DataUrl(format!("the base64 data is broken: {error}")))
}

fn check_escapes(data: &str) -> Result<(), Error> {
    let bytes = data.as_bytes();
    for (at, _) in data.match_indices('%') {
        let digits = bytes.get(at + 1..at + 3);
        if !digits.is_some_and(|pair| pair.iter().all(u8::is_ascii_hexdigit)) {
            let reason = format!(
                "\"%\" at character {at} of the data is not followed by two hexadecimal digits; a percent sign itself is written %25"
            );
            return Err(Error::DataUrl(reason));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn all_spellings_decode() {
        for (url, expected) in [
            ("data:,a%20b", "a b"),
            ("data:text/plain;charset=utf-8;base64,YSBi", "a b"),
            ("data:;base64,YSBi", "a b"),
            ("DATA:,x", "x"),
            ("data:text/plain,a+b,c", "a+b,c"),
            ("data:,", ""),
            ("data:;base64,YQ%3D%3D", "a"),
        ] {
            assert_eq!(decode(url).unwrap(), expected.as_bytes(), "{url}");
        }
    }

    #[test]
    fn malformed_data_urls_are_refused() {
        for url in [
            "",
            "http://x",
            "data:nothing",
            "data:;base64,YQ",
            "data:,%4",
            "data:,%zz",
        ] {
            assert!(decode(url).is_err(), "{url}");
        }
        assert!(gunzip(b"no").is_err());
    }

    proptest! {
        #[test]
        fn text_round_trips(contents in ".*") {
            prop_assert_eq!(decode(&text(&contents)).unwrap(), contents.as_bytes());
        }

        #[test]
        fn bytes_round_trip(contents in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(&decode(&base64(&contents)).unwrap(), &contents);
            prop_assert_eq!(&gunzip(&decode(&gzip_base64(&contents)).unwrap()).unwrap(), &contents);
        }

        #[test]
        fn decoding_never_panics(url in "(data:)?.{0,40}") {
            decode(&url).ok();
        }
    }
}
