//! Contents as data URLs, in the smallest of three encodings.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_encode;

use crate::data_url::{RESERVED, gzip};

/// Units: bytes. Go's compressor needs 3 to 5 more than ours as a rule, since it ends with an empty block. Counting
/// 3, both decide alike whether compression pays, except for 43 of 5164 texts of up to 1 KiB, all with two encodings of
/// nearly equal length.
const GO_OVERHEAD: usize = 3;

/// Units: characters, of `gzip` in the member `compression`.
const COMPRESSION_COST: usize = 4;

/// Whether contents may be compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AutoCompression {
    /// When that is smaller.
    Allowed,
    /// Never.
    Off,
}

/// The URL of contents, and whether they are compressed in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EncodedContents {
    pub(super) url: String,
    pub(super) is_compressed: bool,
}

/// Encodes contents: percent escapes, base64, or compressed in base64. Equal lengths prefer the first.
///
/// Source: coreos/butane, base/util/url.go.
pub(super) fn encode(contents: &[u8], compression: AutoCompression) -> EncodedContents {
    let mut data = format!(",{}", percent_encode(contents, RESERVED));
    let base64 = format!(";base64,{}", STANDARD.encode(contents));
    if base64.len() < data.len() {
        data = base64;
    }
    let mut is_compressed = false;
    if compression == AutoCompression::Allowed {
        let packed = gzip(contents);
        let base64_length = |bytes: usize| ";base64,".len() + bytes.div_ceil(3) * 4;
        let length = base64_length(packed.len() + GO_OVERHEAD);
        if length + COMPRESSION_COST < data.len() {
            data = format!(";base64,{}", STANDARD.encode(packed));
            is_compressed = true;
        }
    }
    EncodedContents {
        url: format!("data:{data}"),
        is_compressed,
    }
}

/// Encodes a text without another choice: percent escapes.
pub(super) fn escape(text: &str) -> String {
    format!("data:,{}", percent_encode(text.as_bytes(), RESERVED))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data_url::{decode, gunzip};

    #[test]
    fn the_smallest_encoding_wins() {
        let allowed = |contents: &[u8]| encode(contents, AutoCompression::Allowed);
        assert_eq!(allowed(b"a b/(c)\n").url, "data:,a%20b%2F(c)%0A");
        assert_eq!(allowed(&[0, 1, 2]).url, "data:,%00%01%02");
        assert_eq!(allowed(&[0; 12]).url, "data:;base64,AAAAAAAAAAAAAAAA");
        let long = [b'a'; 200];
        assert!(allowed(&long).is_compressed);
        assert!(!encode(&long, AutoCompression::Off).is_compressed);
        assert_eq!(allowed(b"").url, "data:,");
    }

    proptest! {
        #[test]
        fn contents_round_trip(contents in proptest::collection::vec(any::<u8>(), 0..400), repeat in 1_usize..20) {
            let contents = contents.repeat(repeat);
            let encoded = encode(&contents, AutoCompression::Allowed);
            let bytes = decode(&encoded.url).unwrap();
            let bytes = if encoded.is_compressed { gunzip(&bytes).unwrap() } else { bytes };
            prop_assert_eq!(bytes, contents);
        }
    }
}
