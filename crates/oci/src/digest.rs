//! Digests and the hashing behind them.

use std::fmt;
use std::str::FromStr;

use model::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256, Sha512};

/// A hash algorithm that digests may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// 64 hexadecimal digits.
    Sha256,
    /// 128 hexadecimal digits.
    Sha512,
}

impl Algorithm {
    /// The name in a digest.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    fn hex_length(self) -> usize {
        match self {
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }
}

impl FromStr for Algorithm {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "sha256" => Ok(Self::Sha256),
            "sha512" => Ok(Self::Sha512),
            _ => Err(Error::invalid(
                "digest algorithm",
                format!("{text:?} is neither sha256 nor sha512"),
            )),
        }
    }
}

/// A digest: algorithm and hash, printed as `sha256:…`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    algorithm: Algorithm,
    hex: String,
}

impl Digest {
    /// The SHA-256 digest of `bytes`.
    pub fn sha256(bytes: &[u8]) -> Self {
        Self::of(Algorithm::Sha256, bytes)
    }

    /// The digest of `bytes`.
    pub fn of(algorithm: Algorithm, bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new(algorithm);
        hasher.update(bytes);
        hasher.finish()
    }

    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The hash in lower-case hexadecimal digits.
    pub fn hex(&self) -> &str {
        &self.hex
    }

    /// Whether `bytes` have this digest.
    pub fn matches(&self, bytes: &[u8]) -> bool {
        Self::of(self.algorithm, bytes) == *self
    }
}

impl FromStr for Digest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |reason: &str| Error::invalid("digest", format!("{text:?}: {reason}"));
        let (algorithm, hex) = text
            .split_once(':')
            .ok_or_else(|| wrong("expected algorithm:hex"))?;
        let algorithm: Algorithm = algorithm
            .parse()
            .map_err(|_| wrong("the algorithm is neither sha256 nor sha512"))?;
        let is_lower_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if hex.len() != algorithm.hex_length() || !hex.bytes().all(is_lower_hex) {
            return Err(wrong(
                "expected 64 (sha256) or 128 (sha512) lower-case hexadecimal digits",
            ));
        }
        Ok(Self {
            algorithm,
            hex: hex.to_owned(),
        })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.as_str(), self.hex)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// Incremental hash of a byte stream.
#[derive(Debug, Clone)]
pub struct Hasher(HashState);

#[derive(Debug, Clone)]
enum HashState {
    Sha256(Sha256),
    Sha512(Sha512),
}

impl Hasher {
    /// A hasher without input.
    pub fn new(algorithm: Algorithm) -> Self {
        Self(match algorithm {
            Algorithm::Sha256 => HashState::Sha256(Sha256::new()),
            Algorithm::Sha512 => HashState::Sha512(Sha512::new()),
        })
    }

    /// Hashes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            HashState::Sha256(state) => state.update(bytes),
            HashState::Sha512(state) => state.update(bytes),
        }
    }

    /// The digest of all bytes.
    pub fn finish(self) -> Digest {
        let (algorithm, hex) = match self.0 {
            HashState::Sha256(state) => (Algorithm::Sha256, hex::encode(state.finalize())),
            HashState::Sha512(state) => (Algorithm::Sha512, hex::encode(state.finalize())),
        };
        Digest { algorithm, hex }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_values() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::sha256(b"").to_string(), empty);
        assert!(empty.parse::<Digest>().unwrap().matches(b""));
        let long = Digest::of(Algorithm::Sha512, b"abc");
        assert!(long.hex().starts_with("ddaf35a193617aba"));
        assert_eq!(long.to_string().parse::<Digest>().unwrap(), long);
    }

    #[test]
    fn malformed_digests_are_refused() {
        let upper = format!("sha256:{}", "A".repeat(64));
        let short = format!("sha256:{}", "a".repeat(63));
        let crossed = format!("sha512:{}", "a".repeat(64));
        for wrong in [
            "",
            "sha256",
            "sha256:",
            "md5:d41d8cd98f00b204e9800998ecf8427e",
            "sha256:../x",
            &upper,
            &short,
            &crossed,
        ] {
            assert!(wrong.parse::<Digest>().is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_parses_or_is_refused(text in "\\PC{0,140}") {
            if let Ok(digest) = text.parse::<Digest>() {
                prop_assert_eq!(digest.to_string(), text);
            }
        }

        #[test]
        fn chunks_hash_like_the_whole(bytes: Vec<u8>, at: prop::sample::Index) {
            let mut hasher = Hasher::new(Algorithm::Sha256);
            let at = at.index(bytes.len() + 1);
            hasher.update(&bytes[..at]);
            hasher.update(&bytes[at..]);
            prop_assert_eq!(hasher.finish(), Digest::sha256(&bytes));
        }
    }
}
