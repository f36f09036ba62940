//! Rendered pages of folders, for a second: many clients, and clients that ask again, cost one reading.
//!
//! A page is that of one version of its folder, so that an added, renamed or removed entry is seen at once; a size or time
//! of an entry, after a second.

use std::time::{Duration, Instant};

use bytes::Bytes;
use concurrency::BoundedCache;
use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};

use super::root::OpenedFile;
use super::sort::SortOrder;

/// Pages in memory. Units: bytes.
pub(super) const CAPACITY: usize = 8 << 20;
/// How long a page is sent again.
const FRESH: Duration = Duration::from_secs(1);
/// Memory of a page beside its text. Units: bytes.
const OVERHEAD: usize = 160;

/// Digest of a path, the version of its folder, an order, and the origin in the page.
pub(super) type ListingKey = [u8; SHA256_OUTPUT_LEN];

/// Pages, and when their reading began.
#[derive(Debug)]
pub(super) struct ListingCache(BoundedCache<ListingKey, (Instant, Bytes)>);

impl ListingCache {
    pub(super) fn new() -> Self {
        Self(BoundedCache::new(CAPACITY))
    }

    /// The key of a page.
    pub(super) fn key(
        path: &[u8],
        folder: &OpenedFile,
        order: SortOrder,
        origin: Option<&str>,
    ) -> ListingKey {
        let stat = &folder.stat;
        let mut digest = Context::new(&SHA256);
        for number in [
            stat.st_dev,
            stat.st_ino,
            stat.st_mtime.cast_unsigned(),
            stat.st_mtime_nsec,
            stat.st_ctime.cast_unsigned(),
            stat.st_ctime_nsec,
        ] {
            digest.update(&number.to_le_bytes());
        }
        digest.update(order.by.text().as_bytes());
        digest.update(&[u8::from(order.is_descending)]);
        // No origin has the byte that ends it.
        digest.update(origin.unwrap_or_default().as_bytes());
        digest.update(&[0]);
        digest.update(path);
        let mut key = [0; SHA256_OUTPUT_LEN];
        key.copy_from_slice(digest.finish().as_ref());
        key
    }

    /// A fresh page.
    pub(super) fn get(&self, key: ListingKey, now: Instant) -> Option<Bytes> {
        let (began, page) = self.0.get(key)?;
        (now.saturating_duration_since(began) < FRESH).then_some(page)
    }

    /// Keeps a page whose reading began at `began`.
    pub(super) fn put(&self, key: ListingKey, began: Instant, page: Bytes) {
        let size = page.len() + OVERHEAD;
        self.0.put(key, (began, page), size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_fresh_for_a_second() {
        let (cache, now) = (ListingCache::new(), Instant::now());
        cache.put([0; 32], now, Bytes::from_static(b"page"));
        let later = now + FRESH;
        assert!(
            cache
                .get(
                    [0; 32],
                    later.checked_sub(Duration::from_millis(1)).unwrap()
                )
                .is_some()
        );
        assert!(cache.get([0; 32], later).is_none());
    }

    // limit: listings in memory
    #[test]
    fn pages_in_memory_are_bounded() {
        let (cache, now) = (ListingCache::new(), Instant::now());
        let half = Bytes::from(vec![0; CAPACITY / 2 - OVERHEAD]);
        for number in 0..2 {
            cache.put([number; 32], now, half.clone());
        }
        assert!(cache.get([0; 32], now).is_some(), "both fit");
        cache.put([2; 32], now, Bytes::from_static(b"page"));
        assert!(cache.get([1; 32], now).is_none());
        assert!(cache.get([0; 32], now).is_some(), "used later");
    }
}
