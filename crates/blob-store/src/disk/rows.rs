//! Encoding of index rows, kept short: a large registry has a hundred thousand of them.

use crate::{Result, StoreError};
use oci::{Algorithm, Digest, Manifest, media_type};

/// An encoded digest: one byte for the algorithm, and the hash.
pub(super) type DigestKey = Vec<u8>;

/// Size of a dangling link: its content is missing or damaged. Units: bytes.
pub(super) const DANGLING: u64 = u64::MAX;

/// Media types of manifests; entries are never removed or moved, since rows store their position.
const TYPES: [&str; 6] = [
    media_type::OCI_MANIFEST,
    media_type::OCI_INDEX,
    media_type::DOCKER_MANIFEST,
    media_type::DOCKER_LIST,
    media_type::DOCKER_SCHEMA1,
    media_type::DOCKER_SCHEMA1_SIGNED,
];

/// A manifest that a repository has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ManifestRow {
    /// Its SHA-256.
    pub(super) canonical: Digest,
    pub(super) media_type: &'static str,
    /// Units: bytes. See [`DANGLING`].
    pub(super) size: u64,
    /// The manifest that it refers to.
    pub(super) subject: Option<Digest>,
}

impl ManifestRow {
    pub(super) fn of(manifest: &Manifest) -> Self {
        Self {
            canonical: manifest.digest.clone(),
            media_type: manifest.media_type,
            size: manifest.bytes.len() as u64,
            subject: manifest
                .subject
                .as_ref()
                .map(|subject| subject.digest.clone()),
        }
    }

    /// A dangling link, of which only the digest is known.
    pub(super) fn dangling(canonical: &Digest) -> Self {
        Self {
            canonical: canonical.clone(),
            media_type: media_type::OCI_MANIFEST,
            size: DANGLING,
            subject: None,
        }
    }

    /// Type, size, digest, subject.
    pub(super) fn encode(&self) -> Vec<u8> {
        let kind = (0..)
            .zip(TYPES)
            .find(|(_, known)| *known == self.media_type);
        let mut row = vec![kind.map_or(u8::MAX, |(kind, _)| kind)];
        row.extend(self.size.to_le_bytes());
        row.extend(key(&self.canonical));
        row.extend(self.subject.iter().flat_map(key));
        row
    }

    pub(super) fn decode(row: &[u8]) -> Result<Self> {
        let short = || damaged("a record is too short");
        let (kind, rest) = row.split_first().ok_or_else(short)?;
        let (size, rest) = rest.split_first_chunk().ok_or_else(short)?;
        let canonical_length = 1 + hash_length(Algorithm::Sha256);
        let (canonical, subject) = rest.split_at_checked(canonical_length).ok_or_else(short)?;
        Ok(Self {
            canonical: digest(canonical)?,
            media_type: TYPES
                .get(usize::from(*kind))
                .ok_or_else(|| damaged("a manifest has a type that is not known"))?,
            size: u64::from_le_bytes(*size),
            subject: Some(subject)
                .filter(|subject| !subject.is_empty())
                .map(digest)
                .transpose()?,
        })
    }
}

/// Encodes a digest.
pub(super) fn key(digest: &Digest) -> DigestKey {
    let mut key = vec![match digest.algorithm() {
        Algorithm::Sha256 => 0,
        Algorithm::Sha512 => 1,
    }];
    // A digest is always hexadecimal.
    key.extend(hex::decode(digest.hex()).unwrap_or_default());
    key
}

/// Decodes a digest.
pub(super) fn digest(key: &[u8]) -> Result<Digest> {
    let (algorithm, hash) = match key {
        [0, hash @ ..] => (Algorithm::Sha256, hash),
        [1, hash @ ..] => (Algorithm::Sha512, hash),
        _ => return Err(damaged("a digest is of no known kind")),
    };
    format!("{}:{}", algorithm.as_str(), hex::encode(hash))
        .parse()
        .map_err(damaged)
}

const fn hash_length(algorithm: Algorithm) -> usize {
    match algorithm {
        Algorithm::Sha256 => 32,
        Algorithm::Sha512 => 64,
    }
}

pub(super) fn damaged(why: impl std::fmt::Display) -> StoreError {
    StoreError::Damaged {
        what: "the index of the storage folder".to_owned(),
        why: why.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_decoded_as_encoded() {
        for algorithm in [Algorithm::Sha256, Algorithm::Sha512] {
            let subject = Digest::of(algorithm, b"s");
            assert_eq!(digest(&key(&subject)).unwrap(), subject);
            for subject in [None, Some(subject)] {
                let row = ManifestRow {
                    canonical: Digest::sha256(b"m"),
                    media_type: media_type::DOCKER_LIST,
                    size: 1 << 20,
                    subject,
                };
                assert_eq!(ManifestRow::decode(&row.encode()).unwrap(), row);
            }
        }
    }

    #[test]
    fn damaged_rows_are_refused() {
        let row = ManifestRow {
            canonical: Digest::sha256(b"m"),
            media_type: media_type::OCI_INDEX,
            size: 1,
            subject: None,
        };
        let row = row.encode();
        for end in 0..row.len() {
            ManifestRow::decode(&row[..end]).unwrap_err();
        }
        ManifestRow::decode(&[&[9], &row[1..]].concat()).unwrap_err();
        digest(&[2, 1]).unwrap_err();
        digest(&[0, 1]).unwrap_err();
    }
}
