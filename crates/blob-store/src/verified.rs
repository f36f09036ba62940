//! Content that was compared with its digest since the store was opened.
//!
//! A cache: forgotten content is hashed once more.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use oci::Digest;

/// Minimum number of remembered digests; the maximum is twice that. Each takes 40 bytes.
const LIMIT: usize = 1 << 17;

/// Recently verified content.
#[derive(Debug, Default)]
pub(super) struct Verified(Mutex<Ages>);

/// Two generations: a full young one becomes the old one, whose entries are forgotten.
#[derive(Debug, Default)]
struct Ages {
    young: HashSet<u128>,
    old: HashSet<u128>,
}

impl Verified {
    /// Marks content as verified.
    pub(super) fn mark(&self, canonical: &Digest) {
        let mut ages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ages.young.len() >= LIMIT {
            ages.old = std::mem::take(&mut ages.young);
        }
        ages.young.insert(key(canonical));
    }

    /// Whether content is verified.
    pub(super) fn contains(&self, canonical: &Digest) -> bool {
        let key = key(canonical);
        let ages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ages.young.contains(&key) || ages.old.contains(&key)
    }

    /// Forgets content whose bytes were replaced or removed.
    pub(super) fn forget(&self, canonical: &Digest) {
        let key = key(canonical);
        let mut ages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ages.young.remove(&key);
        ages.old.remove(&key);
    }
}

/// Half of a SHA-256, which is as hard to collide by design as the whole is by chance.
fn key(canonical: &Digest) -> u128 {
    u128::from_str_radix(&canonical.hex()[..32], 16).expect("a digest is hexadecimal")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_bounded_and_the_latest_stay() {
        let verified = Verified::default();
        let digest = |n: usize| format!("sha256:{n:064x}").parse::<Digest>().unwrap();
        // The first half of each differs.
        let digest = |n: usize| {
            let hex = digest(n).hex().to_owned();
            format!("sha256:{}{}", &hex[32..], &hex[..32])
                .parse::<Digest>()
                .unwrap()
        };
        for n in 0..3 * LIMIT {
            verified.mark(&digest(n));
        }
        assert!(!verified.contains(&digest(0)));
        assert!((2 * LIMIT..3 * LIMIT).all(|n| verified.contains(&digest(n))));
        let ages = verified.0.lock().unwrap();
        assert!(ages.young.len() + ages.old.len() <= 2 * LIMIT);
        drop(ages);
        verified.forget(&digest(3 * LIMIT - 1));
        assert!(!verified.contains(&digest(3 * LIMIT - 1)));
    }
}
