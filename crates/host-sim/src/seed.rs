//! Numbers that a seed determines: the same seed plays the same rehearsal.

use md5::{Digest, Md5};

/// Digest of a purpose under a seed.
pub(crate) fn digest(seed: &str, purpose: &str) -> [u8; 16] {
    Md5::digest(format!("{seed}/{purpose}")).into()
}

/// A number below `count`, which must not be 0.
pub fn choose(seed: &str, purpose: &str, count: usize) -> usize {
    let [a, b, c, d, ..] = digest(seed, purpose);
    usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or(0) % count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_the_number() {
        let numbers = |seed: &str| -> Vec<usize> {
            (0..32).map(|at| choose(seed, &at.to_string(), 5)).collect()
        };
        assert_eq!(numbers("a"), numbers("a"));
        assert_ne!(numbers("a"), numbers("b"));
        assert!(numbers("a").iter().all(|number| *number < 5));
        assert!((0..5).all(|number| numbers("a").contains(&number)));
    }
}
